"""Ranks for tests: threads of this process."""

import threading

from onebit import _core

_LOCAL = threading.local()


def rank_of_thread():
    """The rank that this thread is, or 0."""
    return getattr(_LOCAL, "rank", 0)


def run_ranks(count, work):
    """Calls work(ranks) on `count` threads, one a rank, and returns what they return, by rank."""
    results, errors = [None] * count, []

    def run(rank, ranks):
        _LOCAL.rank = rank
        try:
            results[rank] = work(ranks)
        except BaseException as error:  # noqa: BLE001 - handed on below
            errors.append(error)
            try:
                ranks.abort(f"rank {rank}: {error}")
            except Exception:
                pass

    threads = [threading.Thread(target=run, args=(rank, ranks))
               for rank, ranks in enumerate(_core.ranks_as_threads(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
