// The volumes on which scenarios take place, where it is not a local disk.
import type { Volume } from "../../ports/disk.ts";

export const share: Volume = { kind: "network", type: "nfs4", mountOptions: [] };
