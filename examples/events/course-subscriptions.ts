// Course subscriptions: one decision that rests on two things at once, the seats of a course and the timetable of a student.
// Run it: node node_modules/holdfast/dist/examples/events/course-subscriptions.js (here: node dist/examples/events/course-subscriptions.js)
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decide, memoryEvents, modelsOf, type EventStore, type NewEvent } from "holdfast/events";

type CourseDefined = NewEvent<"CourseDefined", { course: string; capacity: number }>;
type CapacityChanged = NewEvent<"CapacityChanged", { course: string; capacity: number }>;
type StudentSubscribed = NewEvent<"StudentSubscribed", { student: string; course: string }>;
export type CourseEvent = CourseDefined | CapacityChanged | StudentSubscribed;

const coursesMax = 5;
const model = modelsOf<CourseEvent>();

/** How many seats a course has; undefined before it is defined. */
const capacityOf = (course: string) =>
  model({
    query: { types: ["CourseDefined", "CapacityChanged"], tags: [`course:${course}`] },
    initial: undefined as number | undefined,
    apply: (_, { data }) => data.capacity,
  });

const subscribersOf = (course: string) =>
  model({
    query: { types: ["StudentSubscribed"], tags: [`course:${course}`] },
    initial: [] as string[],
    apply: (students, { data }) => [...students, data.student],
  });

const courseCountOf = (student: string) =>
  model({
    query: { types: ["StudentSubscribed"], tags: [`student:${student}`] },
    initial: 0,
    apply: (count) => count + 1,
  });

export async function defineCourse(store: EventStore<CourseEvent>, course: string, capacity: number): Promise<void> {
  await decide(store, { defined: capacityOf(course) }, ({ defined }) => {
    if (defined !== undefined) throw new Error(`The course ${course} exists already.`);
    return { type: "CourseDefined", data: { course, capacity }, tags: [`course:${course}`] };
  });
}

export async function changeCapacity(store: EventStore<CourseEvent>, course: string, capacity: number): Promise<void> {
  await decide(store, { current: capacityOf(course), subscribers: subscribersOf(course) }, (states) => {
    if (states.current === undefined) throw new Error(`There is no course ${course}.`);
    if (states.subscribers.length > capacity) throw new Error(`More than ${capacity} have subscribed to ${course}.`);
    if (states.current === capacity) return [];
    return { type: "CapacityChanged", data: { course, capacity }, tags: [`course:${course}`] };
  });
}

export async function subscribe(store: EventStore<CourseEvent>, student: string, course: string): Promise<void> {
  const models = {
    capacity: capacityOf(course),
    subscribers: subscribersOf(course),
    courseCount: courseCountOf(student),
  };
  await decide(store, models, ({ capacity, subscribers, courseCount }) => {
    if (capacity === undefined) throw new Error(`There is no course ${course}.`);
    if (subscribers.includes(student)) throw new Error(`${student} is in ${course} already.`);
    if (subscribers.length >= capacity) throw new Error(`The course ${course} is full.`);
    if (courseCount >= coursesMax) throw new Error(`${student} has ${coursesMax} courses already.`);
    return {
      type: "StudentSubscribed",
      data: { student, course },
      tags: [`student:${student}`, `course:${course}`],
    };
  });
}

export async function main(): Promise<void> {
  // On a shared folder: await openEvents<CourseEvent>("//server/share/school")
  const store = memoryEvents<CourseEvent>();
  await defineCourse(store, "chemistry", 1);
  // Both want the last seat at the same moment.
  const ends = await Promise.allSettled([subscribe(store, "ada", "chemistry"), subscribe(store, "bob", "chemistry")]);
  for (const end of ends) console.log(end.status === "fulfilled" ? "subscribed" : String(end.reason));
}

if (realpathSync(process.argv[1] ?? ".") === fileURLToPath(import.meta.url)) await main();
