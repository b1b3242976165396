// The volumes of scenarios that do not run on a local disk.
import type { Volume } from "../../src/ports/disk.ts";

export const share: Volume = { kind: "network", type: "nfs4", mountOptions: [] };
