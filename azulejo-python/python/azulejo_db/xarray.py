"""xarray on TileDB: the engine ``azulejo``, and ``ds.azulejo.to(..)``.

A dataset is a group; each of its variables a dense array of one attribute, as TileDB-CF-Py lays
them out, whose datasets are read too. Dimensions can grow: the current domain is a variable's shape.

>>> ds = xr.open_dataset("weather", engine="azulejo", at="2024-05")    # doctest: +SKIP
>>> ds.azulejo.to("s3://bucket/weather", mode="a", append_dim="time")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from xarray import open_dataset
from xarray.backends import BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint

from . import _context, _replace
from . import _xarray_checks as _checks
from ._group import Group
from ._job import Job, done
from ._xarray_store import AzulejoStore, make_group, member_of
from .errors import AzulejoError, ExistsError

#: What a tree may do to what is there.
_TREE_MODES = ("w-", "w", "a")
#: What xarray calls the variable of an array without a name of its own, and the attribute that keeps
#: a name that one of its coordinates has.
_UNNAMED, _NAMED = "__xarray_dataarray_variable__", "__xarray_dataarray_name__"


def _root(uri: str | os.PathLike) -> str:
    """Where a dataset lies. As with xarray's other engines ``~`` is the user's own folder."""
    path = os.fspath(uri)
    if not isinstance(path, str):
        raise TypeError(f"a dataset lies in a place named by text, not by {type(path).__name__}")
    return _context.rooted(os.path.expanduser(path))


def _place(filename_or_obj: Any, group: str | None, ctx: Any, at: Any = None) -> str:
    uri = filename_or_obj if isinstance(filename_or_obj, os.PathLike) else str(filename_or_obj)
    return _replace.place(_root(uri), group, ctx, at)


class AzulejoBackend(BackendEntrypoint):
    """The engine ``azulejo`` of ``xarray.open_dataset``."""

    description = "TileDB groups as datasets, through Azulejo"
    open_dataset_parameters = (
        "filename_or_obj", "mask_and_scale", "decode_times", "concat_characters", "decode_coords",
        "drop_variables", "use_cftime", "decode_timedelta", "at", "config", "key", "group",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        return os.path.isdir(os.path.join(os.path.expanduser(os.fspath(filename_or_obj)), "__group"))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: Any = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        at: Any = None,
        config: Mapping[str, Any] | None = None,
        key: bytes | None = None,
        group: str | None = None,
    ) -> xr.Dataset:
        ctx = _context.shared(config, key)
        while True:
            store = AzulejoStore(_place(filename_or_obj, group, ctx, at), at=at, ctx=ctx)
            try:
                return StoreBackendEntrypoint().open_dataset(
                    store, mask_and_scale=mask_and_scale, decode_times=decode_times,
                    concat_characters=concat_characters, decode_coords=decode_coords,
                    drop_variables=drop_variables, use_cftime=use_cftime,
                    decode_timedelta=decode_timedelta,
                )
            except AzulejoError:
                # Another dataset took its place while it was looked at: that one is meant.
                if not _replace.is_replaced(store._group):
                    raise

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, group: str | None = None, **options: Any
    ) -> dict[str, xr.Dataset]:
        """The datasets of a group and of all groups below it, by path."""
        found = {}
        ctx = _context.shared(options.get("config"), options.get("key"))

        def walk(path: str, uri: str) -> None:
            found[path or "/"] = self.open_dataset(uri, **options)
            members = Group(uri, at=options.get("at"), ctx=ctx)
            for name in members:
                if members.kind(name) == "group":
                    walk(f"{path}/{name}", members.location(name))

        walk("", _place(filename_or_obj, group, ctx, options.get("at")))
        return found

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xr.DataTree:
        """The same as one tree."""
        tree = xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))
        tree.set_close(lambda: None)
        return tree


def _parents(root: str, group: str | None, ctx: Any, job: Job, new: bool) -> None:
    """Makes the groups on the way, each a member of the one above. With ``new`` the last of them is made
    too, wherever it lies: who makes it at the same time is refused.
    """
    names = list(filter(None, (group or "").split("/")))
    path = root
    if new if not names else ctx.core.object_type(path) is None:
        make_group(path, ctx, job)
    for i, name in enumerate(names, 1):
        above, path = path, _replace.step(path, name, ctx)
        if (new and i == len(names)) or ctx.core.object_type(path) is None:
            make_group(path, ctx, job)
            ctx.core.edit_group(above, [(name, True, name)], [])
            job.undo(partial(ctx.core.edit_group, above, [], [name]))


def _dump(
    dataset: xr.Dataset, root: str, group: str | None, job: Job, ctx: Any, *, mode: str,
    append_dim: str | None = None, region: Any = None, encoding: Any = None, unlimited_dims: Any = None,
    groups: Sequence[tuple[str, str]] = (), generation: str | None = None,
) -> None:
    """Writes one dataset as a part of a job."""
    from xarray.backends.writers import _sanitize_unlimited_dims, _validate_dataset_names, dump_to_store

    place = _replace.place(root, group, ctx)
    _validate_dataset_names(dataset)
    for name, variable in dataset.variables.items():
        if not isinstance(variable.dtype, np.dtype) and not isinstance(dataset.indexes.get(name), pd.MultiIndex):
            # xarray would ask numpy for it.
            raise TypeError(f"variable {name!r} has pandas' type {variable.dtype}: convert it to one of numpy's")
    unlimited = _sanitize_unlimited_dims(dataset, unlimited_dims)
    kind = ctx.core.object_type(place)
    there = kind == "group"
    if there and mode == "w-":
        raise FileExistsError(place)
    if kind == "array" and mode == "w":
        raise ExistsError(f"{place} is an array, no dataset: it is not replaced; delete it first")
    store = AzulejoStore(place, ctx=ctx, mode="a" if mode == "w-" else mode)
    store._append_dim = append_dim
    if mode == "w":
        store._groups = list(groups)
        store._generation = generation
    if there and mode == "a" and append_dim is None and region is None:
        store._restored = frozenset(map(member_of, dataset.variables))
    if there and mode != "w":
        existing = AzulejoStore(place, ctx=ctx)
        existing._restored = store._restored
        opened = open_dataset(existing, engine="store")
        _checks.encodings(opened, encoding, append_dim)
        if append_dim is not None:
            _checks.appended(dataset, opened, append_dim)
        store._region, dataset = _checks.region(dataset, opened, region, append_dim)
        # The order of dimensions, units, scales and fill values of the variables that are there.
        dataset = dataset.copy()
        for name in set(opened.variables) & set(dataset.variables):
            dims, there = dataset.variables[name].dims, opened.variables[name]
            if dims != there.dims and set(dims) == set(there.dims):
                dataset[name] = dataset[name].transpose(*there.dims)
            held = _checks.held(name, dataset.variables[name], there.encoding)
            if held is not dataset.variables[name]:
                dataset[name] = dataset[name].copy(data=held.data)
            dataset[name].encoding = dict(there.encoding)
    elif region is not None:
        raise FileNotFoundError(place)
    _parents(root, group, ctx, job, mode == "w-")
    dump_to_store(dataset, store, job, encoding=encoding, unlimited_dims=unlimited)


@xr.register_dataset_accessor("azulejo")
class DatasetAccessor:
    """What ``ds.azulejo`` offers."""

    def __init__(self, dataset: xr.Dataset):
        self._dataset = dataset

    def to(
        self,
        uri: str | os.PathLike,
        *,
        mode: str | None = None,
        append_dim: str | None = None,
        region: Mapping[str, slice | str] | str | None = None,
        encoding: Mapping[str, Mapping[str, Any]] | None = None,
        compute: bool = True,
        group: str | None = None,
        unlimited_dims: Any = None,
        config: Mapping[str, Any] | None = None,
        key: bytes | None = None,
    ) -> Any:
        """Writes the dataset as a group of arrays. Nothing of it is seen before all is written.

        ``mode``: ``"w-"`` (the default) refuses what is there, ``"w"`` replaces it once all is
        written (until then, and if the write fails, what was there stays), ``"a"`` adds variables, overwrites those that are there and appends along ``append_dim`` (``"a-"``
        leaves alone what has no such dimension), ``"r+"`` (the default with ``region``) writes into
        what is there. Any number of programs may append at the same time; who computes later and
        was too late gets a ``ConflictError`` then. Chunks of dask are written by its workers, one fragment each; without
        ``compute`` the arrays are made now, with ``"w"`` in the place of those before, and their
        cells count once the result is computed.
        """
        mode = _checks.mode(mode, append_dim, region)
        ctx, root = _context.shared(config, key), _root(uri)

        def fill(job: Job) -> None:
            _dump(
                self._dataset, root, group, job, ctx, mode=mode, append_dim=append_dim,
                region=region, encoding=encoding, unlimited_dims=unlimited_dims,
            )

        return done(ctx, fill, compute)


@xr.register_dataarray_accessor("azulejo")
class DataArrayAccessor:
    """What ``array.azulejo`` offers."""

    def __init__(self, array: xr.DataArray):
        self._array = array

    def to(self, uri: str | os.PathLike, **options: Any) -> Any:
        """Writes the array as a dataset of one variable, which ``xarray.open_dataarray`` gives back;
        the options are those of :meth:`DatasetAccessor.to`.
        """
        name = self._array.name
        is_named = name is not None and name not in self._array.coords and name not in self._array.dims
        dataset = self._array.to_dataset(name=name if is_named else _UNNAMED)
        if name is not None and not is_named:
            dataset.attrs[_NAMED] = name
        return dataset.azulejo.to(uri, **options)


@xr.register_datatree_accessor("azulejo")
class TreeAccessor:
    """What ``tree.azulejo`` offers."""

    def __init__(self, tree: xr.DataTree):
        self._tree = tree

    def to(
        self,
        uri: str | os.PathLike,
        *,
        mode: str = "w-",
        encoding: Mapping[str, Mapping[str, Any]] | None = None,
        compute: bool = True,
        write_inherited_coords: bool = False,
        unlimited_dims: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        key: bytes | None = None,
    ) -> Any:
        """Writes the tree: a group for each node, in the group of the node above. ``encoding`` and
        ``unlimited_dims`` are by the paths of nodes. ``mode``: ``"w-"`` refuses what is there, ``"w"``
        replaces it, ``"a"`` adds to it.
        """
        if mode not in _TREE_MODES:
            raise ValueError(f"mode is one of {_TREE_MODES}, not {mode!r}")
        ctx, root = _context.shared(config, key), _root(uri)
        unknown = set(encoding or {}) - set(self._tree.groups)
        if unknown:
            raise ValueError(f"unexpected encoding group name(s) provided: {unknown}")
        kind = ctx.core.object_type(root)
        if mode == "w-" and kind is not None:
            raise FileExistsError(root)
        if mode == "w" and kind == "array":
            raise ExistsError(f"{root} is an array, no dataset: it is not replaced; delete it first")
        nodes = {path: (node, node is self._tree) for path, node in self._tree.subtree_with_keys}
        generation = _replace.generation() if kind else None
        job = Job(ctx)
        try:
            if mode != "a" and kind is None:
                make_group(root, ctx, job)
            # Where the tree is new its root comes last, with which all of it appears.
            for path, (node, own) in nodes.items() if mode == "a" else reversed(list(nodes.items())):
                options: dict[str, Any] = {"mode": "a"}
                place, below = root, None if own else path
                if mode != "a" and own:
                    tops = [name for name in nodes if name != path and "/" not in name]
                    groups = [(_replace.folder(name, generation), name) for name in tops]
                    options = {"mode": "w", "groups": groups, "generation": generation}
                elif mode != "a":
                    top, _, below = path.partition("/")
                    place = root.rstrip("/") + "/" + _replace.folder(top, generation)
                _dump(
                    node.to_dataset(inherit=write_inherited_coords or own), place, below, job, ctx,
                    encoding=(encoding or {}).get(node.path),
                    unlimited_dims=(unlimited_dims or {}).get(node.path), **options,
                )
            return job.finish(compute)
        except BaseException:
            job.discard()
            raise


__all__ = ["AzulejoBackend", "AzulejoStore", "DataArrayAccessor", "DatasetAccessor", "TreeAccessor"]
