# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Make the pictures of the live page in docs/, with a real model and browser.

    python tools/live_pictures.py docs

Joins clips of two motion sets that the model has not seen (`make_motion.py`
with seeds 1 and 2) to two videos, streams them through the model that comes
with the package (`mmvidattn stream ... --serve`), and takes screenshots in
Chromium: `live_page.gif` (ten seconds of the page), `live_page.png`,
`live_page_clip.png` (the clip of an event) and `live_page_phone.png`. Needs
selenium, Chromium and chromedriver.

Also writes `prediction.gif`: the classes that `mmvidattn predict --windows`
finds in the first of these videos.
"""
import argparse
import io
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
from PIL import Image
from selenium import webdriver

SIDE, FPS = 256, 20
MODEL = 'linear_ff_tiny_motion', 'default'
WINDOW = '--seconds', '0.9', '--stride', '0.3'
# Colors of a gif, which bound its size.
COLORS = 64
# Width and height in CSS pixels, and device pixels per CSS pixel, by name.
PICTURES = dict(
    live_page_gif=(1400, 760, 1),
    live_page=(1400, 1120, 1),
    live_page_clip=(1400, 900, 1),
    live_page_phone=(390, 1500, 1))


def run_program(program: str, *args: object) -> None:
    """Run a program of tools/."""
    subprocess.run([sys.executable, Path(__file__).parent / program,
                    *map(str, args)], check=True)


def join_clips(folder: Path, path: Path, seed: int, count: int) -> None:
    """Write a video of `count` clips of a new motion set."""
    run_program('data/motion/make_motion.py', folder, '--train', count,
                '--val', '8', '--seed', seed)
    writer = cv2.VideoWriter(
        str(path), cv2.VideoWriter_fourcc(*'mp4v'), FPS, (SIDE, SIDE))
    for line in (folder / 'train.txt').read_text().splitlines():
        reader = cv2.VideoCapture(str(folder / line.rsplit(maxsplit=1)[0]))
        while (read := reader.read())[0]:
            writer.write(cv2.resize(read[1], (SIDE, SIDE)))
    writer.release()


@contextmanager
def serve(videos: list[Path], folder: Path) -> Iterator[str]:
    """Stream the videos, and yield the address of the page."""
    process = subprocess.Popen(
        [sys.executable, '-m', 'mmvidattn', 'stream', *videos, *MODEL,
         *WINDOW, '--serve', '--port', '0'],
        cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        yield next(match[0] for match in map(
            re.compile(r'http://\S+').search, process.stdout) if match)
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def open_browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium') or ''
    for word in ('--headless=new', '--no-sandbox', '--disable-gpu',
                 '--disable-dev-shm-usage', '--hide-scrollbars'):
        options.add_argument(word)
    browser = webdriver.Chrome(
        options, webdriver.ChromeService(shutil.which('chromedriver')))
    try:
        yield browser
    finally:
        browser.quit()


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError('the page did not get the expected events')
        time.sleep(0.2)


def resize(browser: webdriver.Chrome, name: str, dark: bool) -> None:
    width, height, scale = PICTURES[name]
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', dict(
        width=width, height=height, deviceScaleFactor=scale,
        mobile=width < 500))
    browser.execute_script(f'theme("{"dark" if dark else "light"}")')
    time.sleep(1)


def write_gif(path: Path, pictures: list[Image.Image], seconds: float,
              size: tuple[int, int]) -> None:
    """Write pictures that are shown for some seconds each."""
    small = [picture.convert('RGB').resize(size, Image.Resampling.LANCZOS)
             for picture in pictures]
    # Some pictures side by side, for one palette that fits all of them.
    joined = Image.new('RGB', (4 * size[0], size[1]))
    for column in range(4):
        joined.paste(small[column * len(small) // 4], (column * size[0], 0))
    palette = joined.quantize(COLORS)
    first, *rest = (picture.quantize(
        palette=palette, dither=Image.Dither.NONE) for picture in small)
    first.save(path, save_all=True, append_images=rest, loop=0,
               duration=round(1000 * seconds), optimize=True)


def record_page(path: Path, browser: webdriver.Chrome, dark: bool,
                seconds: float = 10, interval: float = 0.5) -> None:
    """Write a gif of some seconds of the page."""
    resize(browser, 'live_page_gif', dark)
    pictures = []
    start = time.monotonic()
    while len(pictures) < seconds / interval:
        pictures.append(Image.open(
            io.BytesIO(browser.get_screenshot_as_png())))
        time.sleep(max(0, start + len(pictures) * interval
                       - time.monotonic()))
    write_gif(path, pictures, interval, size=(945, 513))


def record_prediction(path: Path, video: Path, seconds: float = 8) -> None:
    """Write a gif of the start of a video with the predicted classes."""
    captioned = video.with_name('prediction.mp4')
    run_program('predict.py', video, '--windows', '1', '--out', captioned)
    reader, pictures = cv2.VideoCapture(str(captioned)), []
    while len(pictures) < seconds * FPS and (read := reader.read())[0]:
        pictures.append(Image.fromarray(read[1][..., ::-1]))
    write_gif(path, pictures[::2], 2 / FPS, size=(240, 316))


def take_pictures(out: Path, browser: webdriver.Chrome, address: str,
                  seconds: float, dark: bool) -> None:
    """Write the pictures after some seconds of both videos."""
    browser.get(address)
    wait_for(lambda: browser.execute_script(
        'return sources.length == 2 && sources.every('
        f'one => one.steps.at(-1)?.time > {seconds})'), 60 + 5 * seconds)
    record_page(out / 'live_page.gif', browser, dark)
    for name in 'live_page', 'live_page_phone':
        resize(browser, name, dark)
        browser.save_screenshot(str(out / f'{name}.png'))
    resize(browser, 'live_page_clip', dark)
    # The clip of an event that ended before the last one is complete.
    browser.execute_script(
        'const ended = sources[0].sorted().filter(one => one.end);'
        'viewer.open(sources[0], ended.at(-2))')
    wait_for(lambda: browser.execute_script(
        'return document.querySelector("#viewer video").currentTime > .5 || '
        'document.querySelector("#viewer img").naturalWidth'), 20)
    browser.save_screenshot(str(out / 'live_page_clip.png'))


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=Path, help='folder of the pictures')
    parser.add_argument('--seconds', type=float, default=40.,
                        help='seconds of the videos to show (default: 40)')
    parser.add_argument('--light', action='store_true',
                        help='use the light theme (default: the dark one)')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as temporary:
        folder, videos = Path(temporary), []
        for seed, name in (1, 'arena.mp4'), (2, 'gate.mp4'):
            videos.append(folder / name)
            join_clips(folder / f'seed{seed}', videos[-1], seed,
                       count=int(args.seconds) + 24)
        record_prediction(args.out.resolve() / 'prediction.gif', videos[0])
        with serve(videos, folder) as address, open_browser() as browser:
            take_pictures(args.out.resolve(), browser, address, args.seconds,
                          not args.light)
    print('wrote the pictures to', args.out)


if __name__ == '__main__':
    main()
