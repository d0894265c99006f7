"""What a running process uses, and a limit on it."""

import pathlib


def memory(process):
    """Resident memory now and at its peak, in megabytes."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return tuple(int(found[key].split()[0]) // 1024 for key in ("VmRSS", "VmHWM"))


def reset_peak(process):
    pathlib.Path(f"/proc/{process.pid}/clear_refs").write_text("5")


class MemoryLimit:
    """A control group with a limit on memory, beyond which the kernel kills."""

    def __init__(self, megabytes):
        roots = [pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")]
        limits = ["memory.limit_in_bytes", "memory.max"]
        self.group = None
        for root, limit in zip(roots, limits):
            try:
                group = root / "tidegate-long"
                group.mkdir(exist_ok=True)
                (group / limit).write_text(str(megabytes << 20))
                self.group = group
                return
            except OSError as error:
                fault = error
        raise RuntimeError(f"no limit on memory can be set here: {fault}")

    def hold(self, process):
        (self.group / "cgroup.procs").write_text(str(process.pid))

    def end(self):
        self.group.rmdir()
