/** What goes wrong, told apart by `code`. */
export class AzulejoError extends Error {
  /**
   * @param {string} code NotFound, InvalidArgument, SchemaMismatch, Corrupt, Unsupported,
   *   Encryption, Storage, Budget, Internal; of sources also Refused, Short, Range, Unlisted
   * @param {string} message which object, and why
   * @param {{uri?: string, cause?: unknown}} [more]
   */
  constructor(code, message, more = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "AzulejoError";
    this.code = code;
    if (more.uri !== undefined) this.uri = more.uri;
  }
}

/** The reason of a signal that has fired. */
export function reasonOf(signal) {
  return signal.reason ?? new DOMException("The operation was aborted", "AbortError");
}

/** What the module threw, as users get it. */
export function thrown(error, signal) {
  if (error?.code === "Cancelled" && signal?.aborted) return reasonOf(signal);
  if (error instanceof AzulejoError) return error;
  if (typeof error?.code === "string") return new AzulejoError(error.code, error.message);
  if (error instanceof WebAssembly.RuntimeError) {
    const text = `internal error: ${error.message} (please report it)`;
    return new AzulejoError("Internal", text, { cause: error });
  }
  return error;
}

/** What a promise gives that others may wait for too; a signal ends the waiting alone. */
export async function unlessAborted(promise, signal) {
  if (!signal) return promise;
  if (signal.aborted) throw reasonOf(signal);
  let stop;
  const aborted = new Promise((_, reject) => {
    stop = () => reject(reasonOf(signal));
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
