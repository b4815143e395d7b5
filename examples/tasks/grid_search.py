"""scikit-learn's search over a grid, its fits as tasks: needs scikit-learn."""

import joblib
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

import grass.joblib  # noqa: F401 -- makes the backend known

data, kinds = load_iris(return_X_y=True)
search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5, 50]}, cv=3)
with joblib.parallel_config("grass", n_jobs=2):
    search.fit(data, kinds)
print("best:", search.best_params_)
