import { render } from "preact";
import { httpApi } from "./data/api";
import { socketStream } from "./data/socket";
import { startRouter } from "./lib/router";
import { App } from "./views/app";
import { Model } from "./views/model";
import "./styles/index.css";

startRouter();
const model = new Model(httpApi(document.baseURI), socketStream(document.baseURI));
render(<App model={model} />, document.getElementById("app")!);
void model.start();
