# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""S3 server on this machine that can be stopped and started again."""
import signal
import socket
import subprocess
import sys
from pathlib import Path

# moto keeps its buckets in memory. They are filled before the port answers, so
# that a restarted server has all files from the start.
SERVER = '''
import sys, time
from pathlib import Path
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

folder = Path(sys.argv[1])
# The account of requests with any access key.
store = s3_backends['123456789012']['aws']
for bucket in folder.iterdir():
    store.create_bucket(bucket.name, 'us-east-1')
    for path in bucket.rglob('*'):
        if path.is_file():
            store.put_object(bucket.name, str(path.relative_to(bucket)),
                             path.read_bytes())
ThreadedMotoServer('127.0.0.1', int(sys.argv[2]), verbose=False).start()
print('ready', flush=True)
time.sleep(3600)
'''


class S3Server:
    """Server of a folder, whose subfolders are the buckets.

    Args:
        folder: The folder.

    Attributes:
        env: Environment variables of a client.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self.port = probe.getsockname()[1]
        self.env = dict(
            AWS_ENDPOINT_URL=f'http://127.0.0.1:{self.port}',
            AWS_ACCESS_KEY_ID='test', AWS_SECRET_ACCESS_KEY='test',
            AWS_DEFAULT_REGION='us-east-1', NO_PROXY='127.0.0.1')
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start the server with the files of the folder."""
        self.process = subprocess.Popen(
            [sys.executable, '-c', SERVER, str(self.folder), str(self.port)],
            stdout=subprocess.PIPE)
        for line in self.process.stdout:
            if line.strip() == b'ready':
                return
        raise RuntimeError('the S3 server did not start')

    def stop(self) -> None:
        """Kill the server."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()
            self.process = None
