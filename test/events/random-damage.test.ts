// Every deed once in each mode: four rounds have all of them. More rounds are in random-damage.deep.ts.
import { damageAtRandom } from "./random-damage.ts";

damageAtRandom([1, 2, 3, 4]);
