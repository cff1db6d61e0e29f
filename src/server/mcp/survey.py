# SPDX-License-Identifier: Apache-2.0
# Prints what is installed, in one line for a tool's description. Runs in a cell.
import importlib.metadata
import importlib.util
import sys

# What it is imported as, and what its distribution is called where that differs.
KNOWN = """
numpy pandas scipy matplotlib seaborn plotly bokeh altair sympy mpmath networkx statsmodels
sklearn:scikit-learn skimage:scikit-image cv2:opencv-python torch tensorflow jax numba xgboost
lightgbm nltk spacy PIL:pillow pyarrow polars h5py openpyxl xlrd docx:python-docx pypdf lxml
bs4:beautifulsoup4 yaml:PyYAML jinja2 tabulate dateutil:python-dateutil pydantic shapely geopandas
pytest
"""


def version(distribution):
    try:
        return " " + importlib.metadata.version(distribution).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


found = []
for word in KNOWN.split():
    module, _, distribution = word.partition(":")
    if importlib.util.find_spec(module):
        found.append(module + version(distribution or module))
print("Python %d.%d.%d" % sys.version_info[:3], end="")
print(" with its standard library" + (", " + ", ".join(found) if found else ""))
