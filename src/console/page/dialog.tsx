// The question before every action, and the announcement of its outcome.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "./api.ts";
import { Text } from "./parts.tsx";

export interface Question {
  readonly title: string;
  /** The thing that the action changes. */
  readonly subject: string;
  /** What will happen, in whole sentences. */
  readonly consequence: string;
  /** The label of the button. */
  readonly verb: string;
  readonly isDangerous?: boolean;
  /** Asks for a text that goes along, such as the reason of a pause. */
  readonly ask?: { readonly name: string; readonly title: string };
  /** Run one after another: each takes at most 200 tickets. */
  readonly requests: readonly { readonly action: string; readonly body: object }[];
  readonly onDone?: () => void;
}

let show: (question: Question) => void = () => undefined;

/** Asks, and runs the requests if the person agrees. */
export function ask(question: Question): void {
  show(question);
}

export function Dialog(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [question, setQuestion] = useState<Question>();
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = useState<{ text: string; isBad: boolean }>();
  show = setQuestion;
  useEffect(() => {
    if (question !== undefined) dialog.current?.showModal();
  }, [question]);
  useEffect(() => {
    if (said === undefined || said.isBad) return;
    const timer = setTimeout(() => setSaid(undefined), 8000);
    return () => clearTimeout(timer);
  }, [said]);
  const close = (): void => {
    dialog.current?.close();
    setQuestion(undefined);
  };
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (question === undefined || isBusy) return;
    const given = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement));
    setBusy(true);
    try {
      let text = "";
      for (const { action, body } of question.requests) text = await post(action, { ...body, ...given });
      setSaid({ text, isBad: false });
      question.onDone?.();
    } catch (error) {
      setSaid({ text: (error as Error).message, isBad: true });
    } finally {
      setBusy(false);
      close();
    }
  };
  return (
    <>
      <dialog
        ref={dialog}
        aria-labelledby="question"
        aria-describedby="consequence"
        onCancel={() => setQuestion(undefined)}
      >
        {question === undefined ? null : (
          <form onSubmit={(event) => void submit(event)}>
            <h2 id="question">{question.title}</h2>
            <p class="subject">
              <Text value={question.subject} />
            </p>
            <p id="consequence">{question.consequence}</p>
            {question.ask === undefined ? null : (
              <label>
                <span>{question.ask.title}</span>
                <input name={question.ask.name} maxLength={500} />
              </label>
            )}
            <p class="pager">
              <button type="button" onClick={close}>
                Cancel
              </button>
              <button type="submit" class={question.isDangerous === true ? "danger" : "main"} disabled={isBusy}>
                {question.verb}
              </button>
            </p>
          </form>
        )}
      </dialog>
      <div class="said" role="status" aria-live="polite">
        {said === undefined ? null : (
          <p class={said.isBad ? "bad" : "good"}>
            <span aria-hidden="true">{said.isBad ? "✕" : "✓"}</span> <Text value={said.text} />
            <button type="button" aria-label="Dismiss" onClick={() => setSaid(undefined)}>
              ×
            </button>
          </p>
        )}
      </div>
    </>
  );
}
