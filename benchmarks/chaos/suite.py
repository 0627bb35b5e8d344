"""Seed after seed, a line for each, and the figures of all."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chaos.crew import Crew
from chaos.storm import AT_ONCE, Outcome, run_seed
from support.connect import ConnectServer
from support.projects import ROOT

LANES = 2
"""Seeds that are run at once: a batch of few records leaves half of a machine to others."""

KILLS = 10
"""Of each seed, at least."""

_COLUMNS = ("seed", "kills", "batches", "retries", "fenced", "refused", "lost", "doubled", "seconds")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 0 when nothing was lost, doubled or otherwise wrong."""
    options = _options(arguments)
    first, last = options.first_seed, options.first_seed + options.seeds
    seeds = [options.seed] if options.seed is not None else range(first, last)
    started, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="tidemill-chaos-"))
    print("".join(name.rjust(9) for name in _COLUMNS), flush=True)
    outcomes = run_seeds(seeds, folder, kills=options.kills)
    figures = figures_of(outcomes, time.monotonic() - started)
    kinds = sum((o.judgement.kinds for o in outcomes), Counter[str]())
    print(f"batches: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}")
    weather = sum((o.judgement.weather for o in outcomes), Counter[str]())
    print(f"weather: {', '.join(f'{count} {what}' for what, count in weather.most_common())}")
    print(json.dumps(figures))
    options.figures.parent.mkdir(parents=True, exist_ok=True)
    options.figures.write_text(json.dumps(figures, indent=2) + "\n")
    good = all(outcome.judgement.good for outcome in outcomes)
    short = [str(o.seed) for o in outcomes if o.kills < options.kills]
    if short:
        print(
            f"seeds with fewer than {options.kills} kills before their time was over: {', '.join(short)}",
            file=sys.stderr,
        )
    if good:
        shutil.rmtree(folder)
    return 0 if good and not short else 1


def run_seeds(seeds: Iterable[int], folder: Path, *, kills: int) -> list[Outcome]:
    """What came of each seed; as many at once as there are lanes, all on one server."""
    waiting, outcomes = deque(seeds), []

    def lane(number: int) -> None:
        place = folder / f"lane-{number}"
        place.mkdir()
        remotes = [f"{server.remote}/;session_id={uuid.uuid4()}" for _ in range(AT_ONCE)]
        with Crew(place, lambda: server.is_running) as crew:
            while waiting:
                outcome = run_seed(waiting.popleft(), crew, folder, remotes=remotes, kills=kills)
                outcomes.append(outcome)
                tell(outcome, kills)

    with ConnectServer(folder) as server, ThreadPoolExecutor(LANES) as lanes:
        for done in [lanes.submit(lane, number) for number in range(min(LANES, len(waiting)))]:
            done.result()
    return outcomes


def figures_of(outcomes: Sequence[Outcome], seconds: float) -> dict[str, float | dict[str, int]]:
    """All seeds together; who was refused, by the name of the error."""
    refused = sum((o.refused for o in outcomes), Counter[str]())
    return {
        "seeds": len(outcomes),
        "kills": sum(o.kills for o in outcomes),
        "batches": sum(o.judgement.batches for o in outcomes),
        "fenced": sum(o.fenced for o in outcomes),
        "lost": sum(o.judgement.lost.total() for o in outcomes),
        "doubled": sum(o.judgement.doubled.total() for o in outcomes),
        "refused": dict(sorted(refused.items())),
        "seconds": round(seconds, 1),
    }


def _line(outcome: Outcome) -> str:
    found = outcome.judgement
    values: Iterable[int] = (
        *(outcome.seed, outcome.kills, found.batches, found.retries, outcome.fenced),
        *(outcome.refused.total(), found.lost.total(), found.doubled.total(), round(outcome.seconds)),
    )
    return "".join(f" {value}".rjust(9) for value in values)


def tell(outcome: Outcome, kills: int) -> None:
    """A line for a seed, and what there is to complain of; a good one leaves nothing behind."""
    print(_line(outcome), flush=True)
    if outcome.judgement.good:
        shutil.rmtree(outcome.folder)
        return
    lines = [f"  {reason}" for reason in outcome.judgement.reasons]
    lines.append(f"  how its workers ended: {dict(outcome.ends)}")
    lines.append(f"  what they left is in {outcome.folder}")
    lines.append(f"  again: python benchmarks/chaos/chaos.py --seed {outcome.seed} --kills {kills}")
    print("\n".join(lines), file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos.py", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many (20)")
    parser.add_argument("--first-seed", type=int, default=1, help="the first of them (1)")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"at least so many in each ({KILLS})")
    figures = ROOT / "build" / "chaos.json"
    parser.add_argument("--figures", type=Path, default=figures, help="where the figures go (build/chaos.json)")
    return parser.parse_args(arguments)
