# SPDX-License-Identifier: Apache-2.0
"""IPython.display where IPython is not installed: its objects, for display() to ask."""
import json as _json

from IPython.core.display_functions import *


class DisplayObject:
    """Data of one format, given or read from a file of the workspace."""

    _mode = "r"

    def __init__(self, data=None, url=None, filename=None, metadata=None, **_):
        if url is not None:
            raise ValueError("there is no network: give the data or a file name")
        if data is None and filename is not None:
            with open(filename, self._mode) as file:
                data = file.read()
        self.data, self.filename, self.metadata = data, filename, metadata or {}

    def __repr__(self):
        return f"<IPython.display.{type(self).__name__} object>"


class TextDisplayObject(DisplayObject):
    pass


class Pretty(TextDisplayObject):
    def __repr__(self):
        return str(self.data)


class Code(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, language="python"):
        super().__init__(data, url, filename)
        self.language = language

    def _repr_markdown_(self):
        return f"```{self.language}\n{self.data}\n```"

    def __repr__(self):
        return str(self.data)


class HTML(TextDisplayObject):
    def _repr_html_(self):
        return self.data


class Markdown(TextDisplayObject):
    def _repr_markdown_(self):
        return self.data


class Latex(TextDisplayObject):
    def _repr_latex_(self):
        return self.data


class Math(TextDisplayObject):
    def _repr_latex_(self):
        return "$\\displaystyle " + self.data.strip("$") + "$"


class SVG(TextDisplayObject):
    def _repr_svg_(self):
        return self.data


class JSON(DisplayObject):
    def _repr_json_(self):
        return _json.loads(self.data) if isinstance(self.data, str) else self.data


class Javascript(TextDisplayObject):
    """Nothing runs scripts here: shown as text."""


class Image(DisplayObject):
    _mode = "rb"
    _beginnings = {b"\x89PNG": "image/png", b"\xff\xd8": "image/jpeg", b"GIF8": "image/gif"}

    def __init__(self, data=None, url=None, filename=None, format=None, **options):
        if isinstance(data, str) or hasattr(data, "__fspath__"):
            data, filename = None, data
        super().__init__(data, url, filename, options.get("metadata"))

    def _repr_mimebundle_(self, include=None, exclude=None):
        for beginning, mime in self._beginnings.items():
            if bytes(self.data or b"").startswith(beginning):
                return {mime: self.data}
        return None


def set_matplotlib_formats(*formats, **options):
    """Figures are PNG."""


set_matplotlib_close = set_matplotlib_formats
