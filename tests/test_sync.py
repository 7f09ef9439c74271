"""Async methods called from synchronous code, also where an event loop runs already."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import warnings
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from seasoned.envs import Grid
from seasoned.errors import InputError
from seasoned.sync import Cancellation, Sync
from seasoned.testing import check_environment


class Clock:
    """A resource that records the loops of its calls; an async resource belongs to one loop."""

    def __init__(self) -> None:
        self.loops, self.closed, self.cancelled = set(), False, False

    async def tick(self, what="tock", *, fail=False):
        self.loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0)
        if fail:
            raise ValueError(what)
        return what

    async def wait(self, begun):
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    def now(self):
        return 12

    async def aclose(self):
        self.loops.add(asyncio.get_running_loop())
        self.closed = True


def use(clock):
    with Sync(clock) as sync:
        answers = [sync.tick(), sync.tick("tick"), sync.now()]
        with pytest.raises(ValueError, match="broken"):
            sync.tick("broken", fail=True)
        answers.append(sync.tick("again"))
    return answers


def loop_threads():
    return {thread for thread in threading.enumerate() if thread.name == "seasoned-sync"}


async def use_inside(clock):
    return use(clock), asyncio.get_running_loop()


def test_methods_are_called_on_one_loop_and_the_target_is_closed():
    clock = Clock()
    assert use(clock) == ["tock", "tick", 12, "again"]
    assert clock.closed
    assert len(clock.loops) == 1


def test_sync_gives_equal_results_inside_a_running_loop():
    clock, before = Clock(), loop_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers, running = asyncio.run(use_inside(clock))
        gc.collect()  # a coroutine that nobody awaited would warn now
    assert answers == ["tock", "tick", 12, "again"]
    assert clock.closed
    assert len(clock.loops) == 1
    assert running not in clock.loops
    assert loop_threads() <= before


def test_sync_uses_the_same_loop_inside_and_outside_a_running_loop():
    clock = Clock()
    sync = Sync(clock)
    assert sync.tick() == "tock"

    async def inside():
        assert sync.tick("inside") == "inside"
        sync.close()

    asyncio.run(inside())
    assert clock.closed
    assert len(clock.loops) == 1


def test_two_wrappers_share_the_loop_of_one_resource():
    clock, before = Clock(), loop_threads()
    with Sync(clock) as one, Sync(clock) as other:
        assert [one.tick(), other.tick(), one.tick()] == ["tock"] * 3
        assert len(clock.loops) == 1
    assert loop_threads() <= before


def test_resource_is_closed_on_its_loop_by_a_wrapper_that_was_not_called():
    clock, before = Clock(), loop_threads()
    with Sync(clock), Sync(clock) as other:
        other.tick()
    assert clock.closed
    assert len(clock.loops) == 1
    assert loop_threads() <= before


def test_two_threads_share_the_loop_of_one_resource():
    clock = Clock()
    with Sync(clock) as one, Sync(clock) as other, ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(wrapper.tick) for wrapper in (one, other) * 50]
        assert [call.result() for call in calls] == ["tock"] * 100
    assert len(clock.loops) == 1


def test_a_wrapper_called_inside_a_wrapped_coroutine_does_not_wait_for_itself():
    class Outer:
        async def tick(self):
            with Sync(Clock()) as inner:
                return inner.tick("inner")

    with Sync(Outer()) as outer:
        assert outer.tick() == "inner"
        assert outer.tick() == "inner"


def test_a_wrapper_called_by_its_own_coroutine_is_refused():
    class Snake:
        async def bite(self, wrapper):
            return wrapper.bite(wrapper)

    with Sync(Snake()) as snake, pytest.raises(InputError, match="wait for itself"):
        snake.bite(snake)


def test_a_wrapper_called_around_another_is_refused():
    class Caller:
        def __init__(self, wrapper):
            self.wrapper = wrapper

        async def tick(self):
            return self.wrapper.tick()

    with Sync(Clock()) as clock, Sync(Caller(clock)) as caller, Sync(Caller(caller)) as outer:
        clock.tick()
        with pytest.raises(InputError, match="wait for itself"):
            outer.tick()


def test_many_threads_begin_one_loop():
    before = loop_threads()
    with Sync(Clock()) as clock, ThreadPoolExecutor(20) as threads:
        list(threads.map(lambda _: clock.tick(), range(20)))
    assert loop_threads() <= before


def test_an_exit_inside_a_coroutine_is_raised_and_the_loop_goes_on():
    class Quitter:
        async def quit(self):
            raise SystemExit(3)

    with Sync(Quitter()) as quitter, Sync(Clock()) as clock:
        with pytest.raises(SystemExit):
            quitter.quit()
        assert clock.tick() == "tock"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_loop_of_its_own():
    with Sync(Clock()) as clock:
        clock.tick()
        if (child := os.fork()) == 0:
            os._exit(0 if clock.tick() == "tock" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_public_checker_runs_inside_a_running_loop():
    async def cell():
        check_environment(lambda: Grid(["S.G"]), episodes=1)

    asyncio.run(cell())


def test_an_interrupt_cancels_the_tasks_of_the_thread():
    clock, begun = Clock(), threading.Event()

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    async def cell():
        # asyncio.run turns the first SIGINT into a cancellation; a notebook has Python's own handler.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=interrupt).start()
        with Sync(clock) as sync:
            sync.wait(begun)

    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(cell())
    finally:
        signal.signal(signal.SIGINT, before)
    assert clock.cancelled
    assert clock.closed


@pytest.mark.parametrize(("place", "has_begun"), [("call_soon_threadsafe", True), ("run_coroutine_threadsafe", False)])
def test_an_interrupt_just_before_the_wait_cancels_the_call(place, has_begun):
    clock, begun = Clock(), threading.Event()

    def interrupt(frame, event, _):
        if event == "return" and frame.f_code.co_name == place:
            if has_begun:
                begun.wait(20)
            raise KeyboardInterrupt

    with Sync(clock) as sync:
        sync.tick()
        sys.setprofile(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                sync.wait(begun)
        finally:
            sys.setprofile(None)
        assert clock.cancelled or not begun.is_set()
        assert sync.tick() == "tock"


def test_a_cancelled_call_ends_and_later_ones_do_not_begin():
    target, begun, cancellation = Clock(), threading.Event(), Cancellation()

    def call(clock):
        with cancellation:
            with pytest.raises(CancelledError):
                clock.wait(begun)
            with pytest.raises(CancelledError):
                clock.tick()
        return clock.tick()

    with Sync(target) as clock, ThreadPoolExecutor(1) as threads:
        called = threads.submit(call, clock)
        assert begun.wait(20)
        cancellation.cancel()
        assert called.result(20) == "tock"
    assert target.cancelled
