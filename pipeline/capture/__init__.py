"""Analyze wire captures: frames, exchanges, the compatibility matrix, latencies, violations, differences of two runs.

analysis = Captures(session(), ["run/*.pulscap"])
analysis.matrix.show()
output.write(analysis, "report")
"""

from pulsarium.pipeline.capture.captures import Captures, NoCaptures, differences, found

__all__ = ["Captures", "NoCaptures", "differences", "found"]
