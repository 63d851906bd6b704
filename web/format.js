// Values as text.

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count: 1,234,567. */
export const count = (n) => grouped.format(n);

/** Bytes: 1.2 MB. */
export function bytes(n) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let size = Number(n);
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return unit === 0 ? `${size} ${units[0]}` : `${size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

/** A number of a plot or legend, short. */
export function short(value) {
  if (typeof value === "bigint") return value.toString();
  if (!Number.isFinite(value)) return String(value);
  if (value !== 0 && (Math.abs(value) >= 1e7 || Math.abs(value) < 1e-3)) return String(Number(value.toPrecision(3)));
  return String(Number(value.toPrecision(5)));
}

/** A moment of milliseconds since 1970, without what is zero. */
export function moment(ms) {
  const date = new Date(Number(ms));
  if (Number.isNaN(date.getTime())) return `${ms}`;
  const text = date.toISOString().replace("T", " ");
  return text.replace(/(?: 00:00:00)?(?:\.000)?Z$/, "").replace(/(:\d\d)\.(\d{3})Z$/, "$1.$2");
}

const TICKS = {
  DATETIME_SEC: 1000,
  DATETIME_MIN: 60_000,
  DATETIME_HR: 3_600_000,
  DATETIME_DAY: 86_400_000,
  DATETIME_WEEK: 604_800_000,
  DATETIME_MS: 1,
};

/** Ticks in a millisecond, and digits that they are more than it. */
const FINE = {
  DATETIME_US: [1000n, 3],
  DATETIME_NS: [1_000_000n, 6],
};

/** The tick that is no time. */
const NO_TIME = -(2n ** 63n);

/** A moment of whole ticks, of which numbers hold too few digits. */
function fineMoment(ticks, [each, digits]) {
  const rest = ((ticks % each) + each) % each;
  const date = new Date(Number((ticks - rest) / each));
  if (Number.isNaN(date.getTime())) return `${ticks}`;
  if (rest === 0n) return moment(date.getTime());
  return date.toISOString().replace("T", " ").replace("Z", String(rest).padStart(digits, "0"));
}

/** A value of a field as text. */
export function cell(value, datatype = "") {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return value;
  if (ArrayBuffer.isView(value)) {
    const shown = [...value.subarray(0, 12)].map((v) => cell(v, datatype)).join(", ");
    return `[${shown}${value.length > 12 ? ", …" : ""}]`;
  }
  if (datatype === "BOOL") return value ? "true" : "false";
  if (value === NO_TIME && /^(DATETIME|TIME)_/.test(datatype)) return "NaT";
  const fine = FINE[datatype];
  if (fine && (typeof value === "bigint" || Number.isInteger(value))) return fineMoment(BigInt(value), fine);
  const tick = TICKS[datatype];
  if (tick) return moment(Number(value) * tick);
  if (datatype === "DATETIME_YEAR") return String(1970 + Number(value));
  if (datatype === "DATETIME_MONTH") {
    const months = 1970 * 12 + Number(value);
    return `${Math.floor(months / 12)}-${String((((months % 12) + 12) % 12) + 1).padStart(2, "0")}`;
  }
  if (typeof value === "bigint" || Number.isInteger(value)) return String(value);
  return String(datatype === "FLOAT32" ? Number(value.toPrecision(7)) : value);
}

/** Both ends of a range of coordinates; of reals, a few digits. */
export function range(bounds, datatype) {
  const real = /FLOAT/.test(datatype);
  const text = (bound) => (real ? short(Number(bound)) : cell(bound, datatype));
  return `${text(bounds[0])} … ${text(bounds[1])}`;
}

/** The filters of a field. */
export function filters({ filters: pipeline }) {
  return pipeline.filters.map(({ filter }) => filter.replaceAll("_", " ")).join(", ");
}
