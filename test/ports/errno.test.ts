import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import { holdfastError } from "../../src/errors.ts";
import { diskError, errnoOf, isOutcomeUnknown } from "../../src/ports/disk-error.ts";
import { findErrno, toDiskError } from "../../src/ports/node/disk/errno.ts";

const withCode = (code: string): Error => Object.assign(new Error("failed"), { code });
const unnamed = (name: "ESTALE" | "EDQUOT"): Error => withCode(`Unknown system error -${constants.errno[name]}`);

describe("the name of a failed file call", () => {
  it("is the POSIX name that Node gives", () => {
    expect(findErrno(withCode("ENOENT"))).toBe("ENOENT");
    expect(findErrno(withCode("EHOSTDOWN"))).toBe("EHOSTDOWN");
    expect(findErrno(withCode("E2BIG"))).toBe("E2BIG");
  });

  it.runIf(process.platform === "linux")("is found by number where Node has only a number", () => {
    expect(findErrno(withCode("Unknown system error -116"))).toBe("ESTALE");
    expect(findErrno(withCode("Unknown system error -122"))).toBe("EDQUOT");
  });

  it("is EIO when it has no name, so that the outcome counts as unknown", () => {
    expect(findErrno(withCode("Unknown system error -524"))).toBe("EIO");
    expect(findErrno(withCode("UNKNOWN"))).toBe("EIO");
    expect(isOutcomeUnknown(toDiskError(withCode("UNKNOWN"), "link", "/a"))).toBe(true);
  });

  it("does not exist for what is no failure of the file system", () => {
    expect(findErrno(withCode("ERR_INVALID_ARG_TYPE"))).toBe(undefined);
    expect(findErrno(new TypeError("x"))).toBe(undefined);
    expect(findErrno("ENOENT")).toBe(undefined);
    expect(findErrno(new DOMException("aborted", "AbortError"))).toBe(undefined);
  });
});

describe("an unknown outcome", () => {
  it.each([
    ...["EIO", "ESTALE", "EAGAIN", "ETIMEDOUT", "EREMOTEIO", "EHOSTDOWN", "EHOSTUNREACH"],
    ...["ENETDOWN", "ENETUNREACH", "ENOTCONN", "ECONNRESET", "ECONNABORTED"],
  ])("is what %s says: the answer was lost on the way, or never came", (errno) => {
    expect(isOutcomeUnknown(toDiskError(withCode(errno), "link", "/a"))).toBe(true);
    expect(isOutcomeUnknown(diskError(errno, "link", "/a"))).toBe(true);
  });

  it.each([
    "ENOENT",
    "EEXIST",
    "ENOTEMPTY",
    "EXDEV",
    "EPERM",
    "EACCES",
    "EROFS",
    "ENOSPC",
    "EDQUOT",
    "EBADF",
    "EINVAL",
  ])("is not what %s says: the server has answered no", (errno) => {
    expect(isOutcomeUnknown(toDiskError(withCode(errno), "link", "/a"))).toBe(false);
  });

  it("is not what any other error says, though it has a name like one", () => {
    expect(isOutcomeUnknown(withCode("EIO"))).toBe(false);
    expect(isOutcomeUnknown(holdfastError("OUTCOME_UNKNOWN", "unknown", { path: "/a" }))).toBe(false);
    expect(isOutcomeUnknown(undefined)).toBe(false);
  });
});

describe("toDiskError", () => {
  it("makes the error that protocols branch on, with the original as its cause", () => {
    const cause = unnamed("ESTALE");
    const error = toDiskError(cause, "rename", "/a/b");
    expect(error).toMatchObject({ code: "IO_ERROR", errno: "ESTALE", path: "/a/b", cause });
    expect(isOutcomeUnknown(error)).toBe(true);
    expect(toDiskError(unnamed("EDQUOT"), "write", "/a")).toMatchObject({ code: "DISK_FULL", errno: "EDQUOT" });
  });

  it("leaves our own errors and mistakes of the caller as they are", () => {
    const ours = holdfastError("CLOSED", "closed", {});
    const mistake = new TypeError("a path with a zero byte");
    expect(toDiskError(ours, "read", "/a")).toBe(ours);
    expect(toDiskError(mistake, "read", "/a")).toBe(mistake);
    expect(errnoOf(toDiskError(mistake, "read", "/a"))).toBe(undefined);
  });
});
