// Other rounds of the same deeds than every day, in random-damage.test.ts.
import { damageAtRandom } from "./random-damage.ts";

damageAtRandom([5, 6, 7, 8, 9, 10]);
