import type { AzulejoArray, Attribute } from "./index.js";
import type { RemoteArray } from "./worker.js";

/** A dense array as a store of virtual Zarr version 3, for zarrita and what is made with it. */
export class AzulejoZarrStore {
  constructor(array: AzulejoArray | RemoteArray);
  get(key: string, options?: { signal?: AbortSignal }): Promise<Uint8Array | undefined>;
  /** What index 0 of each axis stands for. */
  readonly origin: bigint[];
}

/** Zarr's type of an attribute, if it has one. */
export function zarrType(attribute: Attribute): string | undefined;
/** The name of an attribute's Zarr array. */
export function pathOf(name: string): string;
