// The contract on every kind of disk, and what a folder promises beside it.
import { boxSites } from "../sites/boxes.ts";
import { describeContract } from "./contract.ts";
import { describeFolder } from "./folder-contract.ts";

for (const [name, make] of boxSites) {
  describeContract(name, make);
  describeFolder(name, make);
}
