# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""RTSP server of one file, with packets from the ffmpeg program."""
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

# Maximum seconds to wait for a client or for ffmpeg.
LIMIT = 30


class RtspServer(ThreadingTCPServer):
    """Serve a video file once to each client, over TCP.

    Args:
        path: The video.
        speed: Playback speed.

    Attributes:
        url: Address of the stream.
    """
    daemon_threads = True

    def __init__(self, path: Path, speed: float = 4.) -> None:
        super().__init__(('127.0.0.1', 0), _Client)
        self.path, self.speed = path, speed
        self.url = f'rtsp://127.0.0.1:{self.server_address[1]}/video'
        threading.Thread(target=self.serve_forever, args=(0.05, ),
                         daemon=True).start()

    def __exit__(self, *args) -> None:
        self.shutdown()
        super().__exit__(*args)


class _Client(StreamRequestHandler):

    def setup(self) -> None:
        self.timeout = LIMIT
        super().setup()
        # ffmpeg sends packets here.
        self.packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.packets.bind(('127.0.0.1', 0))
        self.packets.settimeout(LIMIT)

    def finish(self) -> None:
        self.packets.close()
        super().finish()

    def handle(self) -> None:
        while request := self._request():
            method, number = request
            if method == 'DESCRIBE':
                self._answer(number, 'Content-Type: application/sdp',
                             body=self._description())
            elif method == 'SETUP':
                self._answer(number, 'Session: 1', 'Transport: RTP/AVP/TCP;'
                             'unicast;interleaved=0-1')
            elif method == 'PLAY':
                self._answer(number, 'Session: 1')
                return self._play()
            else:
                self._answer(number, 'Public: DESCRIBE, SETUP, PLAY')

    def _request(self) -> tuple[str, str] | None:
        lines = []
        while line := self.rfile.readline().decode().strip():
            lines.append(line)
        number = [line for line in lines if line.startswith('CSeq')]
        return (lines[0].split()[0], number[0]) if lines else None

    def _answer(self, *headers: str, body: str = '') -> None:
        lines = ['RTSP/1.0 200 OK', *headers, f'Content-Length: {len(body)}']
        self.wfile.write('\r\n'.join([*lines, '', body]).encode())

    def _description(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, 'video.sdp')
            self._ffmpeg('-frames:v', '1', '-sdp_file', path).wait(LIMIT)
            text = path.read_text()
        # Discard the packets of this process.
        self.packets.setblocking(False)
        try:
            while self.packets.recv(1 << 16):
                pass
        except BlockingIOError:
            self.packets.settimeout(LIMIT)
        return text[text.index('v=0'):].replace('\n', '\r\n')

    def _play(self) -> None:
        process = self._ffmpeg()
        try:
            # RTP has no end marker: an empty packet ends the loop.
            threading.Thread(
                target=self._end, daemon=True,
                args=(process, self.packets.getsockname())).start()
            while data := self.packets.recv(1 << 16):
                self.wfile.write(b'$\0' + len(data).to_bytes(2, 'big') + data)
        except OSError:
            # The client has disconnected, or hangs.
            pass
        finally:
            process.kill()
            process.wait()

    def _end(self, process: subprocess.Popen,
             address: tuple[str, int]) -> None:
        process.wait()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b'', address)

    def _ffmpeg(self, *options: object) -> subprocess.Popen:
        port = self.packets.getsockname()[1]
        return subprocess.Popen(
            ['ffmpeg', '-v', 'error', '-readrate', str(self.server.speed),
             '-i', str(self.server.path), '-an', '-c', 'copy',
             *map(str, options), '-f', 'rtp',
             f'rtp://127.0.0.1:{port}?rtcpport={port + 1 & 0xfffe | 1}'
             '&pkt_size=1300'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
