// Dimensions as axes of a picture: coordinates as places, which are numbers.
import * as format from "./format.js";

/** Labels that are read, at most: more than a screen has room for, and little to fetch. */
const MOST_LABELS = 1_000_000;

/** Whether a dimension can be an axis: numbers and times. */
export const isAxis = ({ datatype }) => !/STRING|CHAR|BLOB|GEOM/.test(datatype);

/** An axis over a dimension of an array; places of integers count from 0 at the low end. */
export class Axis {
  constructor(array, index) {
    const dimension = array.dimensions[index];
    const current = array.schema.current_domain;
    const domain = current?.[index] ?? dimension.domain;
    const written = array.nonEmptyDomain?.[index];
    this.name = dimension.name;
    this.datatype = dimension.datatype;
    this.real = dimension.datatype.startsWith("FLOAT");
    this.low = this.real ? 0 : BigInt(domain[0]);
    this.size = this.real ? undefined : Number(BigInt(domain[1]) - BigInt(domain[0])) + 1;
    this.domain = this.real ? domain.map(Number) : [0, this.size - 1];
    /** Where there are cells. */
    this.written = written ? written.map((bound) => this.place(bound)) : this.domain;
    const extent = dimension.tile_extent;
    this.extent = this.real || extent === null ? undefined : Number(extent);
  }

  /** The place of a coordinate. */
  place(coordinate) {
    return this.real ? Number(coordinate) : Number(BigInt(coordinate) - this.low);
  }

  /** The coordinate at a place. */
  coordinate(place) {
    return this.real ? place : this.low + BigInt(Math.floor(place));
  }

  /** The coordinate at a place as text: a label, where the dimension has one. */
  text(place) {
    if (this.real) return format.cell(Number(place.toPrecision(6)), this.datatype);
    const plain = format.cell(this.coordinate(place), this.datatype);
    const label = this.labels?.get(Math.floor(place) - this.written[0]);
    return label === undefined ? plain : `${format.cell(label, this.labels.datatype)} (${plain})`;
  }

  /** Reads the labels of an array's dimension, the first that it has. */
  async readLabels(array) {
    const label = array.schema.dimension_labels.find((l) => array.dimensions[l.dimension].name === this.name);
    const [low, high] = this.written;
    if (!label || this.real || high - low >= MOST_LABELS) return;
    this.labels = await array.labels(label.name, this.bounds(low, high));
    this.labelled = label.name;
  }

  /** Both coordinates of a range of places, cut to the domain. */
  bounds(from, to) {
    const [low, high] = this.domain;
    const [start, end] = [Math.min(Math.max(from, low), high), Math.min(Math.max(to, low), high)];
    return [this.coordinate(start), this.coordinate(end)];
  }
}
