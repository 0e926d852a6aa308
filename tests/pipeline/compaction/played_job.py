"""A substitute for the Spark job. The environment says how the job ends, and where it leaves its process id."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from pulsarium.pipeline.compaction import job
from pulsarium.pipeline.compaction.chunks import CompactionTask
from tests.pipeline.compaction.listed import out, without_spark

HOW, PIDS = "PLAYED_JOB", "PLAYED_JOB_PIDS"


def run(spark: Any, work: CompactionTask) -> job.JobResult:
    (Path(os.environ[PIDS]) / str(os.getpid())).touch()
    match os.environ[HOW]:
        case "crash":
            print("out of everything", flush=True)
            os._exit(3)
        case "raise":
            raise OverflowError("the topic does not fit")
        case "hang":
            time.sleep(600)
    removed = without_spark(work)
    return job.JobResult(len(out(work)), removed)


if __name__ == "__main__":
    setattr(job, "session", Mock())  # noqa: B010  # mypy: it is imported there
    setattr(job, "run", run)  # noqa: B010
    sys.exit(job.main(sys.argv[1]))
