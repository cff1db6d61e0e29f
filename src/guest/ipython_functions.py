# SPDX-License-Identifier: Apache-2.0
"""IPython.core.display_functions, also where IPython is installed: what is shown comes to display().

IPython's own print the objects' repr() where no shell of IPython's runs."""
import builtins as _builtins

__all__ = ["display", "clear_output", "publish_display_data", "update_display", "DisplayHandle"]

display = _builtins.display


class DisplayHandle:
    def __init__(self, display_id=None):
        self.display_id = display_id

    def display(self, *objects, **options):
        display(*objects, **options)

    update = display


def update_display(*objects, **options):
    options.pop("display_id", None)
    display(*objects, **options)


def publish_display_data(data, metadata=None, *_, **__):
    display(data, raw=True)


def clear_output(wait=False):
    """Nothing that was shown is taken back."""
