"""TileDB-Py with another library in the place of the one that it brings: `swapped_package.py LIBRARY FOLDER`."""

import glob
import os
import shutil
import sys

import tiledb

library, folder = sys.argv[1:]
package = os.path.dirname(tiledb.__file__)
(bundled,) = glob.glob(os.path.join(os.path.dirname(package), "tiledb.libs", "libtiledb*.so*"))
shutil.copytree(package, os.path.join(folder, "tiledb"))
os.makedirs(os.path.join(folder, "tiledb.libs"))
os.symlink(os.path.abspath(library), os.path.join(folder, "tiledb.libs", os.path.basename(bundled)))
