"""``python -m t5repro``: the command line without its script on the PATH."""

import sys

from t5repro.cli.main import main

sys.exit(main())
