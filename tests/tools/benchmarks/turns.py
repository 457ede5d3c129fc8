"""Candidates that take turns, each in a process of its own.

A busy neighbour then slows all of them alike, and a share of waiting tells
in which rounds it did.
"""

import os
import subprocess
import sys
import time

PAUSE = 0.5  # seconds: BLAS threads that wait for work by spinning go to sleep


def waited():
    """Seconds this process waited for a processor so far; 0 if unknown."""
    try:
        total = 0
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/schedstat") as file:
                total += int(file.read().split()[1])
        return total / 1e9
    except (OSError, IndexError):
        return 0.0


def take_turns(clock=time.perf_counter):
    """After each turn: print its seconds and share waited, read a line.

    A generator in the worker: it gives the line read, and the worker does
    that work before it asks for the next. The clock may be
    time.process_time, which a busy neighbour does not stop.
    """
    seconds, share = 0.0, 0.0
    while True:
        print(seconds, share, flush=True)
        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        before, start = waited(), clock()
        yield line.strip()
        seconds = clock() - start
        share = (waited() - before) / seconds


def start(command):
    """Start a worker, and wait until it is ready."""
    worker = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    answer(worker)
    return worker


def answer(worker):
    """Seconds and share waited of a turn, when it ends."""
    line = worker.stdout.readline()
    if not line:
        raise SystemExit(f"{worker.args} ended with an error")
    return tuple(map(float, line.split()))


def turn(worker, work=""):
    """Let a worker do some work while the others rest."""
    time.sleep(PAUSE)
    worker.stdin.write(work + "\n")
    worker.stdin.flush()
    return answer(worker)


def stop(worker):
    """Let a worker end."""
    worker.stdin.close()
    worker.wait()


def rounds_of(workers, count, work=""):
    """Rows of (seconds, share waited) for each worker, taken in turns."""
    return [[turn(worker, work) for worker in workers] for _ in range(count)]


def calm_rounds(rounds, limit=0.05):
    """The rounds in which nobody waited for more than 5 % of its time."""
    return [row for row in rounds if all(share <= limit for _, share in row)]
