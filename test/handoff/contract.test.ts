// The contract on every kind of disk.
import { boxSites } from "../sites/boxes.ts";
import { describeContract } from "./contract.ts";

for (const [name, make] of boxSites) describeContract(name, make);
