# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

from mmvidattn.apis import models
from mmvidattn.convert import SOURCES


class Hub(BaseHTTPRequestHandler):
    """Stand-in for the Hub that offers models of the owner facebook."""

    def do_GET(self):
        name = self.path.removeprefix('/api/models/')
        if not name.startswith('facebook/'):
            self.send_error(404)
            return
        file = 'a.bin' if name.endswith('large') else 'a.safetensors'
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(dict(
            sha='0' * 40, siblings=[dict(rfilename=file)])).encode())

    def log_message(self, *args):
        pass


def test_lists_names_without_the_network(run_main, capsys, monkeypatch):
    monkeypatch.setattr('socket.socket', None)
    run_main('weights')
    out = capsys.readouterr().out
    assert 'linear_ff_tiny_motion  1.6 MB, Apache-2.0' in out
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert 'Apache-2.0' in rows['facebook/dinov2-small']
    assert '90 MB' in rows['facebook/dinov2-small']


def test_checks_the_models_of_the_hub(run_main, capsys, monkeypatch):
    server = ThreadingHTTPServer(('127.0.0.1', 0), Hub)
    threading.Thread(target=server.serve_forever, args=(.05, ),
                     daemon=True).start()
    monkeypatch.setenv('HF_ENDPOINT', f'http://127.0.0.1:{server.server_port}')
    run_main('weights', '--check')
    rows = {line.split()[0]: line.rstrip() for line in
            capsys.readouterr().out.splitlines() if line.strip()}
    server.shutdown()
    server.server_close()
    assert rows['facebook/dinov2-small'].endswith('0' * 40)
    assert rows['facebook/dinov2-large'].endswith('without safetensors')
    assert rows['google/vit-base-patch16-224-in21k'].endswith(
        'not reachable: Not Found')


def test_every_model_has_a_converter():
    listed = yaml.safe_load(
        (models.config_folder() / 'start_weights.yml').read_text())
    assert len({one['name'] for one in listed}) == len(listed)
    for one in listed:
        assert set(one) == {'name', 'about', 'mb', 'license', 'sources'}
        names = [f'{family}_image' for family in (
            'linear_ff', 'vivit', 'xvit')] if one['sources'] == 'image' else [
                one['sources']]
        assert {*names} <= {*SOURCES}


def test_lists_published_weights(tmp_path, monkeypatch, run_main, capsys):
    (tmp_path / 'metafile.yml').write_text(
        'Models:\n  - {Name: a, Weights: "https://x/a.pth"}\n  - {Name: b}\n')
    monkeypatch.setattr(models, 'CONFIG_FOLDERS',
                        (*models.CONFIG_FOLDERS, tmp_path))
    run_main('weights')
    assert 'a  https://x/a.pth\n' in capsys.readouterr().out
