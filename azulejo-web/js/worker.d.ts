import type { AzulejoArray, Group, OpenOptions, Where } from "./index.js";

/** An array in a worker: as `AzulejoArray`, but for `batches`, and `io` is a promise. */
export type RemoteArray = Omit<AzulejoArray, "batches" | "io" | "at" | "close"> & {
  at(...args: Parameters<AzulejoArray["at"]>): Promise<RemoteArray>;
  io(): Promise<AzulejoArray["io"]>;
  close(): Promise<void>;
};

export type RemoteGroup = Omit<Group, "open"> & {
  open(...args: Parameters<Group["open"]>): Promise<RemoteArray | RemoteGroup>;
};

export interface AzulejoWorker {
  open(
    where: Exclude<Where, Map<string, unknown>>,
    options?: Omit<OpenOptions, "fetch">,
  ): Promise<RemoteArray | RemoteGroup>;
  /** Ends the worker and all that is open in it. */
  close(): void;
}

/** Starts a worker, in which any number of arrays may be open. */
export function startWorker(): AzulejoWorker;
