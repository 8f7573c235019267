# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The page in a browser."""
import os
import re
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from live_fixtures import FakeRun, wait_until

from mmvidattn.commands import main
from mmvidattn.live import Detection

pytest.importorskip('fastapi')
selenium = pytest.importorskip('selenium')
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from mmvidattn.live.server import LivePage  # noqa: E402

BROWSERS = 'chromium', 'chromium-browser', 'google-chrome'


@pytest.fixture(scope='module')
def browser():
    # .ci/run hides the browser from other tests.
    path = os.environ.get('MMVIDATTN_BROWSER_PATH')
    driver, *programs = (shutil.which(name, path=path)
                         for name in ('chromedriver', *BROWSERS))
    program = next(filter(None, programs), None)
    if program is None or driver is None:
        pytest.skip('Chromium and chromedriver are not installed')
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ('--headless=new', '--no-sandbox', '--disable-gpu',
                     '--disable-dev-shm-usage', '--window-size=1400,1000'):
        options.add_argument(argument)
    options.set_capability('goog:loggingPrefs', dict(browser='ALL'))
    # Selenium searches and downloads nothing if both paths are given.
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield browser
    browser.quit()


def texts(browser, selector, attribute='textContent'):
    """Return the texts of all elements at once, as rows are replaced often."""
    return browser.execute_script(
        'return [...document.querySelectorAll(arguments[0])]'
        '.map(element => element[arguments[1]])', selector, attribute)


def times(browser, source):
    """Return the times of a source's steps on the page."""
    return browser.execute_script(
        f'return sources[{source}].steps.map(step => step.time)')


def drawing(browser, source):
    return browser.execute_script(
        f'return sources[{source}].canvas.toDataURL()')


def test_page_is_live(browser, files, camera, clip, monkeypatch, capsys):
    """`mmvidattn stream --serve` of a clip and a camera.

    The command needs the main thread, because SIGTERM ends it.
    """
    def use_and_stop(page):
        try:
            use_live_page(page.url, browser, camera)
        finally:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    def enter(page, enter=LivePage.__enter__):
        enter(page)
        futures.append(pool.submit(use_and_stop, page))
        return page

    futures, before = [], signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(LivePage, '__enter__', enter)
    with ThreadPoolExecutor(1) as pool:
        try:
            main(['stream', str(clip), camera.url, *map(str, files), '--serve',
                  '--on', '0.26', '--off', '0.1', '--min-duration', '0',
                  '--port', '0', '--token', 'sesam'])
        except SystemExit as end:
            assert end.code == 0
        finally:
            signal.signal(signal.SIGTERM, before)
    futures[0].result()
    out = capsys.readouterr().out
    assert re.search(r'page: http://127.0.0.1:\d+/', out)
    assert 'stopped' in out and 'secret' not in out


def use_live_page(url, browser, camera):
    # Without the token the page shows nothing.
    browser.get(url.replace('sesam', 'wrong'))
    wait_until(lambda: texts(browser, '#connection') == ['wrong token'])
    assert browser.find_element(By.ID, 'login').is_displayed()
    assert texts(browser, '.card h2') == []
    browser.find_element(By.ID, 'token').send_keys('sesam\n')
    wait_until(lambda: texts(browser, '#connection') == ['connected'])
    assert not browser.find_element(By.ID, 'login').is_displayed()
    # The token is removed from the address.
    assert 'sesam' not in browser.current_url

    names = texts(browser, '.card h2')
    assert names[0].endswith('clip.mp4') and names[1].endswith('/video.mjpg')
    assert 'secret' not in browser.page_source

    # Curves, pictures and numbers change.
    wait_until(lambda: len(times(browser, 1)) > 4)
    before = times(browser, 1), drawing(browser, 1)
    wait_until(lambda: times(browser, 1)[-1] >= before[0][-1] + 1)
    assert drawing(browser, 1) != before[1]
    assert sorted(texts(browser, '.card:nth-child(2) .legend .name')) == [
        'jump', 'run', 'swim']
    wait_until(lambda: browser.execute_script(
        'return document.querySelectorAll("img")[1].naturalWidth') == 64)
    wait_until(lambda: texts(browser, '.card:nth-child(2) .latency th') == [
        'ms', 'decode', 'flow', 'features', 'head', 'total', 'lag', 'median',
        '95 %'])

    # Past steps are there after a reload.
    known = times(browser, 1)
    browser.refresh()
    wait_until(lambda: texts(browser, '#connection') == ['connected'])
    assert times(browser, 1)[:len(known)] == known

    # The camera is lost and reopened; the other source continues.
    camera.switch_off()
    states = '.card .state'
    wait_until(lambda: texts(browser, states)[1] == 'lost, reconnecting')
    assert texts(browser, '#connection') == ['connected']
    lost = times(browser, 1)[-1]
    camera.switch_on()
    wait_until(lambda: texts(browser, states)[1] == 'running')
    wait_until(lambda: times(browser, 1)[-1] > lost + 1)
    wait_until(lambda: texts(browser, states)[0] == 'ended')
    # The last steps may still be in the queue.
    wait_until(lambda: times(browser, 0)[-1] == 7.)
    # The browser reports no errors.
    assert [entry for entry in browser.get_log('browser')
            if entry['level'] == 'SEVERE'] == []


class ScriptedRun(FakeRun):
    """Run with given scores and the events detected in them."""
    _step = 0

    def play(self, page, source, *jumps):
        """Publish a step and a picture for each score of jump."""
        for jump in jumps:
            start = self._step / self.rate
            end = start + 1 / self.rate
            scores = np.zeros(len(self.classes), np.float32)
            scores[:2] = 1 - jump, jump
            events = self.event_detector.update(start, end, scores)
            self.events.write(events)
            image = np.full((36, 64, 3), 255 * jump, np.uint8)
            page.publish(source, Detection(
                self._step, end, scores, scores[None], events, [image], {}))
            self._step += 1


@pytest.fixture
def scripted(browser):
    """Page of two scripted runs, open in the browser."""
    runs = [ScriptedRun(name, ('background', 'jump', 'run'), min_duration=.25)
            for name in ('arena', 'field')]
    with LivePage(runs, port=0, token='sesam') as page:
        # Three jumps, the second one short.
        runs[0].play(page, 0, 0, .9, .9, .9, 0, 0, .6, 0, 0, .8, .8, 0, .4)
        runs[1].play(page, 1, 0, 0)
        browser.get('about:blank')
        browser.get(page.url)
        wait_until(lambda: texts(browser, '#connection') == ['connected'])
        wait_until(lambda: len(texts(browser, '.lane button')) == 3)
        yield page, runs
        # Otherwise the next test gets an error about a closed server.
        browser.get('about:blank')


JUMPS = ['jump, 0:00.2 to 0:01.0, peak 0.90', 'jump, 0:01.5 to 0:01.7, '
         'peak 0.60', 'jump, 0:02.2 to 0:02.7, peak 0.80']


def test_sliders_apply_from_the_next_step(browser, scripted):
    page, (run, other) = scripted
    # The first source's.
    slider = browser.find_element(
        By.CSS_SELECTOR, '[aria-label="threshold of jump"]')
    # 0.15 lower, below the current score.
    slider.send_keys(Keys.ARROW_LEFT * 15)
    wait_until(lambda: run.event_detector.thresholds()['changed'] == {
        'jump': (.35, pytest.approx(.21))})
    assert texts(browser, '.now li') == []
    run.play(page, 0, .4)
    wait_until(lambda: texts(browser, '.now li') == ['jump since 0:03.2'])
    # The action ends because the new threshold is above its score.
    slider.send_keys(Keys.END)
    wait_until(lambda: run.event_detector.thresholds()['changed'] == {
        'jump': (1., pytest.approx(.6))})
    run.play(page, 0, .4)
    wait_until(lambda: texts(browser, '.now li') == [])
    assert texts(browser, '.card:nth-child(1) .list tbody tr')[0] == (
        'jump0:03.20:03.50.40')
    assert other.event_detector.thresholds()['changed'] == {}
    # The change is there after a reload, and a click resets it.
    browser.refresh()
    wait_until(lambda: texts(browser, '.changed') == ['1.00'])
    browser.find_element(By.CSS_SELECTOR, '.reset').click()
    wait_until(lambda: run.event_detector.thresholds()['changed'] == {})
    wait_until(lambda: texts(browser, '.changed') == [])


def test_clips_open_by_mouse_and_keyboard(browser, scripted):
    page, (run, _) = scripted
    assert texts(browser, '.lane button', 'ariaLabel') == JUMPS

    def title():
        return texts(browser, '#viewer .about')[0]

    def is_open():
        return browser.execute_script('return viewer.dialog.open')

    def press(key):
        browser.switch_to.active_element.send_keys(key)

    def focused():
        return browser.switch_to.active_element.get_attribute('aria-label')

    buttons = browser.find_elements(By.CSS_SELECTOR, '.lane button')
    buttons[0].click()
    wait_until(lambda: browser.execute_script(
        'return document.querySelector("#viewer img").naturalWidth') == 64)
    assert title() == f'arena · {JUMPS[0]}'
    # The clip lasts from the first picture to one second after the action.
    assert browser.execute_script('return viewer.times') == [
        t / 4 for t in range(1, 9)]
    browser.find_element(By.CSS_SELECTOR, '#viewer .later').click()
    assert title() == f'arena · {JUMPS[1]}'
    press(Keys.ESCAPE)
    wait_until(lambda: not is_open())

    # Tab reaches only the focused event.
    assert focused() == JUMPS[0]
    for key, expected in ((Keys.ARROW_RIGHT, 1), (Keys.END, 2),
                          (Keys.ARROW_RIGHT, 2), (Keys.ARROW_LEFT, 1),
                          (Keys.HOME, 0), (Keys.END, 2)):
        press(key)
        assert focused() == JUMPS[expected]
    assert [button.get_attribute('tabindex') for button in buttons] == [
        '-1', '-1', '0']
    # New steps and events do not move the focus.
    run.play(page, 0, .9, .9)
    wait_until(lambda: len(texts(browser, '.lane button')) == 4)
    assert focused() == JUMPS[2]
    press(Keys.ENTER)
    wait_until(is_open)
    assert title() == f'arena · {JUMPS[2]}'
    # In the viewer, P and N open the events before and after.
    for key, expected in ('p', 1), ('p', 0), ('p', 0), ('n', 1):
        press(key)
        assert title() == f'arena · {JUMPS[expected]}'


def test_lost_stalled_and_ended_sources_are_marked(browser, scripted):
    page, runs = scripted

    def dead():
        return [f'{state}: {veil}' for state, veil in zip(
            texts(browser, '.state'), texts(browser, '.dead .veil'))]

    assert dead() == []
    runs[0].status = 'lost, reconnecting'
    page._latest[1] -= 100
    wait_until(lambda: len(dead()) == 2)
    assert re.fullmatch(r'lost, reconnecting: lost, reconnecting, '
                        r'last step \d+ s ago', dead()[0])
    assert re.fullmatch(r'stalled: no new frames, last step 10\d s ago',
                        dead()[1])
    # Past events are still shown.
    assert texts(browser, '.card.dead .lane button', 'ariaLabel') == JUMPS
    runs[0].status = 'ended'
    runs[1].play(page, 1, 0)
    wait_until(lambda: texts(browser, '.dead') == [])
    # Only the sliders of the ended source are disabled.
    wait_until(lambda: texts(
        browser, '.meter input:not(:disabled)', 'ariaLabel') == [
            'threshold of jump', 'threshold of run'])
    assert texts(browser, '.rule')[0].startswith('The line is the score')
    assert 'below 60 % of it' in texts(browser, '.rule')[1]


@pytest.mark.parametrize('width', [1440, 800, 390])
def test_fits_its_width(browser, scripted, width):
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', dict(
        width=width, height=900, deviceScaleFactor=1, mobile=width < 500))
    for layout in 'cards', 'tiles':
        browser.execute_script(f'layout("{layout}")')
        # clientWidth excludes a vertical scroll bar.
        assert browser.execute_script(
            'const {scrollWidth, clientWidth} = document.documentElement;'
            'return scrollWidth === clientWidth && scrollWidth > 0')
    browser.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
