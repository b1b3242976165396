// Gives every `vi.waitFor` the time that a slow machine needs: its own default is one second.
import { vi } from "vitest";

const timeoutMs = 30_000;
const { waitFor } = vi;

vi.waitFor = (callback, options = {}) =>
  waitFor(callback, typeof options === "number" ? options : { timeout: timeoutMs, ...options });
