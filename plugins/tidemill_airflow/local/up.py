"""`tidemill up` and `tidemill down`: an Airflow with everything that batches need, from start to end."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tidemill.core.errors import ConfigError, EngineError
from tidemill.core.exit_code import ExitCode
from tidemill_airflow.local.client import Client, is_free, listens
from tidemill_airflow.local.home import USER, Home, Running
from tidemill_airflow.local.install import Outcome, install_dags, install_settings
from tidemill_airflow.local.plan import Plan, Wanted, home_of, make_plan
from tidemill_airflow.local.processes import is_alive, mark_of, send
from tidemill_airflow.local.supervisor import Part, Supervisor, last_lines

_PATIENCE = 300.0
_ENDING = 90.0
_PAUSE = 0.2
_SECOND = 0.7
_FIRST_START_OF_KAFKA = 600.0


@dataclass(slots=True)
class Asked:
    """Whether somebody wants to stop, and whether at once: a second Ctrl-C says so."""

    times: list[float] = field(default_factory=list)

    def __call__(self) -> bool:
        """Whether to stop."""
        return bool(self.times)

    def hurry(self) -> bool:
        """Whether to stop at once. One Ctrl-C may arrive twice, from the terminal and from `make`."""
        return bool(self.times) and self.times[-1] - self.times[0] > _SECOND


def up(wanted: Wanted, tell: Callable[[str], None]) -> int:
    """Start everything, tell the address, and keep it running until somebody stops it. Returns the exit code.

    If it runs already, the address is told and nothing is started.

    Raises:
        ConfigError: something is missing or taken; nothing was started.
        EngineError: a part does not stay up; everything was stopped again.
    """
    home = home_of(wanted)
    home.make()
    if not _hold(home, tell):
        return ExitCode.DONE
    try:
        if ended := home.clean():
            tell(f"ended {ended} processes that an earlier start had left")
        _check_machine(wanted)
        with _signals() as asked:
            supervisor = Supervisor(home, tell=tell)
            try:
                return _keep(make_plan(wanted, home), home, supervisor, asked)
            finally:
                supervisor.stop(hurry=asked.hurry)
    finally:
        home.free()


def down(wanted: Wanted, tell: Callable[[str], None]) -> int:
    """Stop everything in a home, also what a killed supervisor has left. Returns the exit code.

    Raises:
        ConfigError: there is no project and no home.
        EngineError: its supervisor cannot be ended.
    """
    home = home_of(wanted)
    if not home.is_made:
        tell(f"nothing runs in {home.folder}")
        return ExitCode.DONE
    if not home.hold():
        tell(f"stopping what runs in {home.folder}")
        _end_supervisor(home)
        ended, was = home.clean(), "stopped"
    else:
        ended = home.clean()
        was = f"ended {ended} processes that were left" if ended else f"nothing runs in {home.folder}"
    home.free()
    tell(was)
    return ExitCode.DONE


def _end_supervisor(home: Home) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        end, sent = time.monotonic() + _ENDING, False
        while not (free := home.hold()) and time.monotonic() < end:
            # One that has just begun says only now who it is.
            if not sent and (found := home.running()) is not None:
                send(found.supervisor, number)
                sent = True
            time.sleep(_PAUSE)
        if free:
            return
    raise EngineError(f"{home.folder} is held by a process that does not end", fix=f"lsof {home.folder}/up.lock")


def _hold(home: Home, tell: Callable[[str], None]) -> bool:
    """Become the supervisor. If another one is, wait until it is ready, tell where it is, and return False."""
    end, waiting = time.monotonic() + _PATIENCE, False
    while not home.hold():
        found = home.running()
        if found is not None and found.address and is_alive(found.supervisor):
            tell(f"it runs already:\n{_login(home, found.address)}")
            return False
        if not waiting:
            tell("it is starting already, or stopping: waiting for it")
            waiting = True
        if time.monotonic() > end:
            raise EngineError(f"{home.folder} is held, but nothing gets ready there", fix="tidemill down")
        time.sleep(_PAUSE)
    return True


def _check_machine(wanted: Wanted) -> None:
    if mark_of(os.getpid()) is None:
        raise ConfigError("processes cannot be looked up in /proc", fix="use Linux, which has it")
    if not is_free(wanted.port):
        raise ConfigError(
            f"port {wanted.port} of 127.0.0.1 is taken; Airflow's pages would be there",
            fix="give another one with --port, or end the program that listens there",
        )
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        raise ConfigError("there is no Java, which Spark needs", fix="tidemill doctor")


def _keep(plan: Plan, home: Home, supervisor: Supervisor, asked: Asked) -> int:
    tell, began = supervisor.tell, time.monotonic()
    _install(plan, home, tell)
    tell(f"starting {', '.join(part.name for part in _all(plan))}; what they say is in {home.folder}/parts")
    _start(plan, home, supervisor, asked)
    if not asked():
        supervisor.note_address(plan.airflow.address)
        tell(_ready(plan, home, time.monotonic() - began))
    while not asked():
        supervisor.look()
        time.sleep(_PAUSE)
    tell("stopping; Ctrl-C once more kills what is left")
    supervisor.stop(hurry=asked.hurry)
    tell("stopped")
    return ExitCode.DONE


def _all(plan: Plan) -> tuple[Part, ...]:
    return (*plan.servers, *plan.feeds, *plan.parts)


def _install(plan: Plan, home: Home, tell: Callable[[str], None]) -> None:
    dags = plan.airflow.dags
    done = [install_settings(home.folder)]
    if dags.is_relative_to(home.folder):
        done.append(install_dags(dags, plan.project.folder))
    for each in done:
        if each.outcome is Outcome.DIFFERS:
            tell(f"{each.path} {each.outcome}")


def _start(plan: Plan, home: Home, supervisor: Supervisor, asked: Asked) -> None:
    """Start everything, and wait until it is ready or somebody stops it.

    Raises:
        EngineError: something is not ready in time, or does not stay up.
    """
    for part in plan.servers:
        supervisor.start(part)
    # A database that is left halfway cannot be used again: only a second Ctrl-C cuts this.
    supervisor.run(plan.migration, asked=asked.hurry)
    if asked():
        return
    patience = _FIRST_START_OF_KAFKA if "kafka" in plan.ports else _PATIENCE

    def closed() -> tuple[str, ...]:
        return tuple(name for name, port in plan.ports.items() if not listens(port))

    # A feed needs its broker; Airflow's processes need half a minute before they need anything.
    first = plan.feeds if "kafka" in plan.ports else ()
    for part in (*(() if first else plan.feeds), *plan.parts):
        supervisor.start(part)
    _wait(closed, supervisor, asked, home, patience)
    for part in first:
        supervisor.start(part)
    client = Client(plan.airflow.address, user=USER, password=home.secrets().password)

    def unready() -> tuple[str, ...]:
        return (*closed(), *(client.unhealthy() or client.missing_dags(plan.dags)))

    _wait(unready, supervisor, asked, home, _PATIENCE)


def _wait(
    missing: Callable[[], tuple[str, ...]], supervisor: Supervisor, asked: Asked, home: Home, patience: float
) -> None:
    end = time.monotonic() + patience
    while not asked() and (names := missing()):
        supervisor.look()
        if time.monotonic() > end:
            said = "\n".join(last_lines(home.said(name)) for name in names)
            raise EngineError(
                f"not ready within {patience:.0f} s: {', '.join(names)}\n{said}", fix=f"see {home.folder}/parts"
            )
        time.sleep(_PAUSE)


def _ready(plan: Plan, home: Home, seconds: float) -> str:
    lines = [f"ready after {seconds:.0f} s", _login(home, plan.airflow.address)]
    place = plan.remote or plan.project.settings.master or "started by each task, which takes seconds"
    lines.append(f"  project    {plan.project.folder}")
    lines.append(f"  pipelines  {', '.join(plan.dags) or 'none that can run'}")
    lines.append(f"  Spark      {place}")
    if "kafka" in plan.ports:
        lines.append(f"  Kafka      127.0.0.1:{plan.ports['kafka']}")
    lines.append("Ctrl-C or `tidemill down` stops it")
    return "\n".join(lines)


def _login(home: Home, address: str) -> str:
    return f"  Airflow    {address}\n  login      {USER}, password {home.secrets().password}"


@contextmanager
def _signals() -> Iterator[Asked]:
    """Note the signals by which a person or a system asks to stop."""
    asked = Asked()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: asked.times.append(time.monotonic())) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def state_of(folder: Path) -> Running | None:
    """What runs in a home, if its supervisor is alive."""
    found = Home(folder).running()
    return found if found is not None and is_alive(found.supervisor) else None
