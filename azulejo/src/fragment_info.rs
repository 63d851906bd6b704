//! What fragments an array has, and what is known about each without reading its cells.
