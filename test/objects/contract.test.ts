// The contract of an object store on every kind of disk.
import { sites } from "../sites/sites.ts";
import { describeObjects } from "./contract.ts";
import { objectsOn } from "./object-sites.ts";

for (const [name, make] of sites) describeObjects(name, () => objectsOn(make));
