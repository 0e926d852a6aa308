"""`python -m pulsarium.matrix.python.official`: its scenarios, a line each."""

from ..lines import serve
from .acknowledging import ACKNOWLEDGING
from .messages import MESSAGES
from .reading import READING
from .topics import TOPICS

if __name__ == "__main__":
    serve({**MESSAGES, **ACKNOWLEDGING, **TOPICS, **READING})
