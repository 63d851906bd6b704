// The expected files of the packed corpus (`azulejo/tests/support/cells.rs` describes the form).
import assert from "node:assert/strict";

/** Columns of cells, each cell as bytes or null, from a `.cells` file. */
export function decodeCells(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const number = () => view.getUint32((at += 4) - 4, true);
  const take = (n) => bytes.subarray(at, (at += n));
  const columns = number();
  return Array.from({ length: columns }, () => {
    const name = new TextDecoder().decode(take(number()));
    const lengths = Array.from({ length: number() }, number);
    return { name, values: lengths.map((n) => (n === 0xffffffff ? null : take(n))) };
  });
}

/** A column of a result in the same form. */
export function cellsOf(column) {
  const { values, offsets, validity, cellValNum } = column;
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const size = values.BYTES_PER_ELEMENT;
  const cells = [];
  for (let i = 0; i < column.length; i++) {
    const [from, to] = offsets
      ? [offsets[i], offsets[i + 1]]
      : [i * cellValNum, (i + 1) * cellValNum];
    cells.push(validity?.[i] === 0 ? null : bytes.subarray(from * size, to * size));
  }
  return { name: column.name, values: cells };
}

const key = (cell) => (cell === null ? "-" : Buffer.from(cell).toString("hex"));

/** The first difference; cells of sparse arrays may come in any order. */
export function compare(expected, columns, ordered) {
  const found = columns.map(cellsOf);
  assert.equal(found.length, expected.length, "number of fields");
  const rows = (all, names) => {
    const picked = names.map((name) => all.find((column) => column.name === name));
    const missing = names.filter((_, i) => picked[i] === undefined);
    assert.deepEqual(missing, [], "fields");
    const list = picked[0].values.map((_, i) => picked.map(({ values }) => key(values[i])).join(" "));
    return ordered ? list : list.sort();
  };
  // Expected files give anonymous fields a name.
  const anonymous = found.some((column) => column.name === "");
  for (const column of expected) if (anonymous && column.name === "attr_") column.name = "";
  if (expected.length === 0) return;
  const names = expected.map((column) => column.name);
  assert.deepEqual(rows(found, names), rows(expected, names));
}
