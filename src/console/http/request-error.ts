// RequestError: the reason why the console refuses a request, as its page shows it.
import { isHoldfastError } from "../../index.ts";

export class RequestError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Turns a failure of the library or of Node into an answer. */
export function asRequestError(error: unknown): RequestError {
  if (typeof error === "object" && error !== null && "status" in error) return error as RequestError;
  if (isHoldfastError(error)) {
    const { code, message } = error;
    if (code.startsWith("NO_SUCH") || code === "NOT_A_STORE") return new RequestError(404, code, message);
    if (code.startsWith("INVALID")) return new RequestError(400, code, message);
    const isConflict = ["RESOURCE_BUSY", "LOCK_TIMEOUT", "PRECONDITION_FAILED", "RETAINED"].includes(code);
    return new RequestError(isConflict ? 409 : 500, code, message);
  }
  const { name = "Error", message = String(error) } = error as Partial<Error>;
  // The library reports wrong arguments like this. Here they came from the address.
  if (name === "TypeError" || name === "RangeError") return new RequestError(400, "WRONG_REQUEST", message);
  return new RequestError(500, "INTERNAL", message);
}
