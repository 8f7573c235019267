# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Video files of many kinds, encoded and decoded by the ffmpeg program."""
import subprocess
from pathlib import Path

import made_videos
import numpy as np

WIDTH, HEIGHT, SECONDS, FPS = 176, 144, 2, 25
X264 = '-c:v libx264 -pix_fmt yuv420p -bf 2 -g 12'
OPEN = f'{X264} -x264-params open-gop=1'
MPEG2 = '-c:v mpeg2video -pix_fmt yuv420p -bf 2 -g 12 -b:v 4M'
MPEG4 = '-c:v mpeg4 -pix_fmt yuv420p -bf 2 -g 12 -b:v 4M'
VP9 = '-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 12'
FIELDS = '-flags +ilme+ildct'
INTERLACED = f'-vf interlace {FIELDS}'
TELECINED = f'-vf telecine {FIELDS}'
ODD = '-vf scale=97:63'
COPY = '-c copy'
NO_B = '-c:v libx264 -pix_fmt yuv420p -bf 0 -g 12'
# File name and encoder options of each kind, and the kind that it is made of,
# if any; or a kind of made_videos.
KINDS = {
    'H.264': ('a.mp4', X264),
    'H.264, one group': ('one.mp4', '-c:v libx264 -pix_fmt yuv420p -g 99'),
    'H.264, open groups': ('open.mkv', OPEN),
    'H.264, intra refresh': ('refresh.mp4',
                             f'{X264} -x264-params intra-refresh=1'),
    'H.264 in MPEG-TS': ('a.ts', X264),
    'HEVC, open groups': (
        'hevc.mp4', '-c:v libx265 -pix_fmt yuv420p -g 12 '
        '-x265-params log-level=none'),
    'MPEG-4 in avi, B-frames': ('a.avi', MPEG4),
    'AV1': ('av1.mp4', '-c:v libaom-av1 -pix_fmt yuv420p -cpu-used 8 -g 12'),
    'interlaced H.264 (MBAFF)': (
        'mbaff.mp4', f'{INTERLACED} {X264} -x264opts tff=1'),
    'interlaced H.264, bottom field first': (
        'bff.mkv', f'{INTERLACED} {X264} -x264opts bff=1'),
    'interlaced MPEG-2 in MPEG-PS': ('fields.mpg', f'{INTERLACED} {MPEG2}'),
    'interlaced MPEG-2 in MPEG-TS': ('fields.ts', f'{INTERLACED} {MPEG2}'),
    'interlaced MPEG-4 in avi': (
        'fields.avi', f'{INTERLACED} {MPEG4} -bf 0'),
    'telecined H.264': (
        'telecined.mp4', f'{TELECINED} {X264} -x264opts tff=1'),
    'telecined MPEG-2': ('telecined2.mp4', f'{TELECINED} {MPEG2}'),
    'telecined by flags, MPEG-2': ('flags.mpg', f'{FIELDS} {MPEG2}'),
    'varying rate': (
        'vfr.mp4', f"-vf select='not(mod(n,5))+gt(n,25)' -vsync vfr {X264}"),
    'varying rate, mkv': (
        'vfr.mkv', f"-vf select='not(mod(n,5))+gt(n,25)' -vsync vfr {X264}"),
    'rotated by 90 degrees': (
        'rotated.mp4', f'{COPY} -metadata:s:v rotate=90', 'H.264'),
    'rotated by 90 degrees, interlaced': (
        'turned.mp4', f'{COPY} -metadata:s:v rotate=90',
        'interlaced H.264 (MBAFF)'),
    '10-bit H.264': (
        '10bit.mp4', '-c:v libx264 -pix_fmt yuv420p10le -bf 2 -g 12'),
    '10-bit HEVC': (
        '10bit.mkv', '-c:v libx265 -pix_fmt yuv420p10le -g 12 '
        '-x265-params log-level=none:open-gop=0'),
    'alpha, VP9': ('alpha.webm', f'{VP9} -pix_fmt yuva420p'),
    'alpha, ProRes 4444': ('alpha.mov',
                           '-c:v prores_ks -pix_fmt yuva444p10le'),
    'alpha, QuickTime RLE': ('rle.mov', '-c:v qtrle -pix_fmt argb'),
    'cut, mp4': ('cut.mp4', COPY, 'H.264'),
    'cut in its first group, mp4': ('first.mp4', COPY, 'H.264, one group'),
    'cut, mkv': ('cut.mkv', COPY, 'H.264'),
    'cut, open groups, mkv': ('cutopen.mkv', COPY, 'H.264, open groups'),
    'cut, interlaced, mp4': (
        'cutfields.mp4', COPY, 'interlaced H.264 (MBAFF)'),
    'without its first key frame': (
        'late.mp4', f"{COPY} -bsf:v noise=drop='lt(n\\,5)'", 'H.264'),
    'odd size, MPEG-4': ('odd.mp4', f'{ODD} {MPEG4} -bf 0'),
    'odd size, VP9': ('odd.webm', f'{ODD} {VP9} -pix_fmt yuv420p'),
    'picture later than the sound': (
        'sound.mp4', '-f lavfi -t 3 -i anullsrc -vf setpts=PTS+1/TB '
        f'-c:a aac {X264}'),
    'two frames with one time stamp': (
        'ties.mkv', rf'{NO_B} -bsf:v setts=ts=TS-eq(N\,20)*40'),
    'an hour without frames': (
        'gap.mkv', rf'{NO_B} -bsf:v setts=ts=TS+gt(N\,24)*3600000'),
    'cover picture': (
        'cover.mp4', '-f lavfi -t 0.04 -i color=s=64x64:r=25 -map 1 -map 0 '
        '-c:v:0 png -disposition:v:0 attached_pic -c:v:1 libx264 '
        '-pix_fmt:v:1 yuv420p'),
    'two videos, the smaller one first': (
        'two.mkv', f'-f lavfi -t 2 -i testsrc=s=64x48 -map 1 -map 0 {MPEG4}'),
    'colon in the path': ('12:30:05.mp4', X264),
    'recording of a browser, without a duration': (
        'live.webm', '-c:v libvpx -pix_fmt yuv420p -g 12 -b:v 2M -live 1'),
    'hidden packets, VP8': ('hidden frames in VP8', ),
    'packets without a picture, MPEG-4': ('not coded', ),
    'size that changes': ('resized', ),
    'cut off in the middle': ('cutoff.mkv', COPY, 'H.264'),
}


def make_kind(kind: str, folder: Path) -> Path:
    """Create a file of a kind, once per folder."""
    name, *rest = KINDS[kind]
    if not rest:
        return made_videos.make(name, folder)
    path, (options, *source) = folder / name, rest
    if path.exists():
        return path
    if source:
        cut = ['-ss', '0.7'] if kind.startswith('cut') and (
            'off' not in kind) else []
        run([*cut, '-i', make_kind(source[0], folder), *options.split(), path])
        if kind.startswith('cut off'):
            path.write_bytes(path.read_bytes()[:path.stat().st_size * 2 // 3])
        return path
    fps = FPS * (2 if INTERLACED in options else 1)
    is_flagged = kind == 'telecined by flags, MPEG-2'
    run(['-f', 'rawvideo', '-pix_fmt', 'rgba', '-s', f'{WIDTH}x{HEIGHT}',
         '-r', fps, '-i', '-', *options.split(),
         path.with_suffix('.m2v') if is_flagged else f'file:{path}'],
        images(SECONDS * fps))
    if is_flagged:
        repeat_fields(path.with_suffix('.m2v'), path)
    return path


def repeat_fields(source: Path, path: Path) -> None:
    """Flag every other picture of an MPEG-2 stream to repeat its first field.

    This is soft telecine. The result is a program stream.
    """
    data = bytearray(source.read_bytes())
    at = number = 0
    while (at := data.find(b'\0\0\1\xb5', at) + 4) > 3:
        if data[at] >> 4 == 8:
            data[at + 3] |= number % 2 << 1
            number += 1
    source.write_bytes(data)
    run(['-framerate', FPS, '-i', source, *COPY.split(), path])


def images(number: int) -> bytes:
    """Draw moving waves and a moving bar, with a gradient of transparency."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    result = np.zeros((number, HEIGHT, WIDTH, 4), np.uint8)
    for i, image in enumerate(result):
        wave = np.sin(rows / 17 + i / 5) + np.cos(columns / 23 - i / 3)
        image[..., 0] = 120 + 40 * wave
        image[..., 1] = 120 + 40 * np.roll(wave, 9, 1)
        image[..., 2] = 120 - 40 * wave
        image[..., 3] = np.linspace(0, 255, WIDTH)
        left = 3 * i % (WIDTH - 24)
        image[40:104, left:left + 24, :3] = 230
    return result.tobytes()


def ffmpeg_frames(path: Path, as_sent: bool = False) -> np.ndarray:
    """Decode a file with the ffmpeg program, [T, H, W, 3].

    Args:
        path: The file.
        as_sent: Ignore edit lists and rotations, which RTP does not transmit.
            Defaults to False.
    """
    # The last packet of a file that was cut off is incomplete.
    options = ['-noautorotate'] if as_sent else ['-fflags', 'discardcorrupt']
    if as_sent and path.suffix in ('.mp4', '.mov'):
        options += ['-ignore_editlist', '1']
    data = run([*options, '-i', f'file:{path}', '-vsync', 'passthrough', '-f',
                'image2pipe', '-c:v', 'ppm', '-pix_fmt', 'rgb24', '-'])
    size = data.split(b'\n', 2)[1]
    width, height = map(int, size.split())
    header = len(b'P6\n%s\n255\n' % size)
    rows = np.frombuffer(data, np.uint8).reshape(
        -1, header + width * height * 3)
    return rows[:, header:].reshape(-1, height, width, 3)


def run(options: list, data: bytes | None = None) -> bytes:
    """Run ffmpeg and return its stdout."""
    return subprocess.run(
        ['ffmpeg', '-nostdin' if data is None else '-y', '-v', 'fatal',
         *map(str, options)], input=data, stdout=subprocess.PIPE, check=True,
        timeout=120).stdout
