"""Events, as records of the logger ``redlatch``."""

import logging

logger = logging.getLogger("redlatch")
# A program that has set up no logging sees none: what failed is an exception as well.
logger.addHandler(logging.NullHandler())
