import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/node_modules/**", "**/vendor/**"] },
  js.configs.recommended,
  {
    files: ["**/*.mjs"],
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: "error",
      "max-lines": ["error", 400],
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "What a job says is text, never HTML." },
        { property: "outerHTML", message: "What a job says is text, never HTML." },
      ],
      "no-restricted-syntax": [
        "error",
        {
          selector: "Property[key.name='dangerouslySetInnerHTML']",
          message: "What a job says is text, never HTML.",
        },
      ],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  {
    files: ["fetch.mjs", "**/web-tools/**"],
    languageOptions: { globals: globals.node },
  },
];
