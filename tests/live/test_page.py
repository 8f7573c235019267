# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The page in a browser, beside the program that serves it."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from live_fixtures import wait_until

pytest.importorskip('fastapi')
selenium = pytest.importorskip('selenium')
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = 'chromium', 'chromium-browser', 'google-chrome'


@pytest.fixture(scope='module')
def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which('chromedriver')
    if program is None or driver is None:
        pytest.skip('there is no Chromium with its chromedriver')
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ('--headless=new', '--no-sandbox', '--disable-gpu',
                     '--disable-dev-shm-usage', '--window-size=1400,1000'):
        options.add_argument(argument)
    options.set_capability('goog:loggingPrefs', dict(browser='ALL'))
    # Both are named, so that selenium looks for nothing.
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture
def page(files, clip, camera, tmp_path):
    """The address of a page of a clip and a camera."""
    process = subprocess.Popen(
        [sys.executable, ROOT / 'tools/stream.py', clip, camera.url, *files,
         '--serve', '--port', '0', '--token', 'sesam'],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env=dict(os.environ, OMP_NUM_THREADS='1', PYTHONUNBUFFERED='1'))
    yield re.search(r'http://127.0.0.1:\d+/', process.stdout.readline())[0]
    process.terminate()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert 'stopped' in out


def texts(browser, selector):
    """Of all elements at once, as rows are replaced all the time."""
    return browser.execute_script(
        'return [...document.querySelectorAll(arguments[0])]'
        '.map(element => element.textContent)', selector)


def times(browser, source):
    """Times of the steps that the page has of a source."""
    return browser.execute_script(
        f'return sources[{source}].steps.map(step => step.time)')


def drawing(browser, source):
    return browser.execute_script(
        f'return sources[{source}].canvas.toDataURL()')


def test_page_is_live(browser, page, camera):
    # Without the token one sees nothing.
    browser.get(f'{page}#token=wrong')
    wait_until(lambda: texts(browser, '#connection') == ['wrong token'])
    assert browser.find_element(By.ID, 'login').is_displayed()
    assert texts(browser, '.card h2') == []
    browser.find_element(By.ID, 'token').send_keys('sesam\n')
    wait_until(lambda: texts(browser, '#connection') == ['connected'])
    assert not browser.find_element(By.ID, 'login').is_displayed()
    # The token is not left in the address.
    assert 'sesam' not in browser.current_url

    names = texts(browser, '.card h2')
    assert names[0].endswith('clip.mp4') and names[1].endswith('/video.mjpg')
    assert 'secret' not in browser.page_source

    # Curves, pictures and figures move.
    wait_until(lambda: len(times(browser, 1)) > 4)
    before = times(browser, 1), drawing(browser, 1)
    wait_until(lambda: times(browser, 1)[-1] >= before[0][-1] + 1)
    assert drawing(browser, 1) != before[1]
    assert sorted(texts(browser, '.card:nth-child(2) .legend .name')) == [
        'jump', 'run', 'swim']
    wait_until(lambda: browser.execute_script(
        'return document.querySelectorAll("img")[1].naturalWidth') == 64)
    wait_until(lambda: texts(browser, '.card:nth-child(2) .latency td')[::3]
               == ['decode', 'flow', 'features', 'head', 'total', 'lag'])

    # The past is there after a reload.
    known = times(browser, 1)
    browser.refresh()
    wait_until(lambda: texts(browser, '#connection') == ['connected'])
    assert times(browser, 1)[:len(known)] == known

    # A camera that is lost and found; the other source goes on to its end.
    camera.switch_off()
    states = '.card .state'
    wait_until(lambda: texts(browser, states)[1] == 'lost, looking for it')
    assert texts(browser, '#connection') == ['connected']
    lost = times(browser, 1)[-1]
    camera.switch_on()
    wait_until(lambda: texts(browser, states)[1] == 'running')
    wait_until(lambda: times(browser, 1)[-1] > lost + 1)
    wait_until(lambda: texts(browser, states)[0] == 'ended')
    # The source has ended; its last steps may still be in the queue.
    wait_until(lambda: times(browser, 0)[-1] == 7.)
    # The browser has no errors to report.
    assert [entry for entry in browser.get_log('browser')
            if entry['level'] == 'SEVERE'] == []
