# SPDX-License-Identifier: Apache-2.0
#| id = "X13"
#| title = "Results that run code or scripts when they are loaded or shown"
#| does = "They are handed out as bytes and text; nothing of ours loads or renders them."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {pickle = "DID", page = "DID"}
#| files = ["model.pkl", "page.html", "picture.svg"]
#| [control]
#| kind = "plain"
#| verdicts = {pickle = "DID", page = "DID"}
#| after = "__import__('pickle').load(open('model.pkl', 'rb')) or os.path.exists('loaded')"
#| after_is = "True"
#| leaves = ["loaded"]
import pickle


class Evil:
    def __reduce__(self):
        return os.system, ("touch loaded",)


def page():
    for name, text in (("page.html", "<script>alert(1)</script>"),
                       ("picture.svg", "<svg onload='alert(1)' xmlns='http://www.w3.org/2000/svg'/>")):
        with open(name, "w") as file:
            file.write(text)


with open("model.pkl", "wb") as file:
    attempt("pickle", pickle.dump, Evil(), file)
attempt("page", page)
