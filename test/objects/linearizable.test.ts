// Histories of one key on every kind of disk.
import { sites } from "../sites/sites.ts";
import { describeLinearizable } from "./contract/linearizable.ts";
import { objectsOn } from "./object-sites.ts";

for (const [name, make] of sites) describeLinearizable(name, () => objectsOn(make));
