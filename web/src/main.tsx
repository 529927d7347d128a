import { render } from "preact";
import { httpApi } from "./data/api";
import { startRouter } from "./lib/router";
import { App } from "./views/app";
import { Model } from "./views/model";
import "./styles/index.css";

// The entry lies one folder below the place that the daemon serves, built or not.
const base = new URL(/* @vite-ignore */ "../", import.meta.url);
startRouter(base.pathname);
const model = new Model(httpApi(base.href), { baseUrl: base.href });
render(<App model={model} />, document.getElementById("app")!);
void model.start();
addEventListener("online", () => model.sync.peek()?.wake());
document.addEventListener("visibilitychange", () => document.hidden || model.sync.peek()?.wake());
