"""Learning, graphs, and SciPy by the array API."""
from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import lazyarray

from .records import Library

sklearn = Library("scikit-learn", "sklearn")
networkx = Library("networkx")
scipy = Library("SciPy", "scipy")
sympy = Library("SymPy", "sympy")


@sklearn("``fit(X, y)``, ``predict(X)``, ``score`` of linear models, SVM, neighbours, naive Bayes", copies="in between")
def test_models(table, target, classes):
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    results = [Ridge().fit(table, target).predict(table), Ridge().fit(table, target).score(table, target)]
    for model in (LogisticRegression(), SVC(), KNeighborsClassifier(), GaussianNB()):
        results += [model.fit(table, classes).predict(table), model.score(table, classes)]
    return results


@sklearn("forests, boosting, trees: ``fit``, ``predict_proba``, ``feature_importances_``", copies="in between")
def test_trees(table, target, classes):
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
    from sklearn.tree import DecisionTreeRegressor

    forest = RandomForestClassifier(5, random_state=0).fit(table, classes)
    return (forest.predict_proba(table), forest.feature_importances_, DecisionTreeRegressor(random_state=0).fit(
        table, target).predict(table), HistGradientBoostingRegressor(max_iter=5).fit(table, target).predict(table))


@sklearn("``fit_transform`` of scalers, PCA, polynomial features, encoders, ``TSNE``; ``KMeans``", copies="in between")
def test_transformers(table, classes, i):
    from sklearn.cluster import DBSCAN, KMeans
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler

    steps = [step.fit_transform(table) for step in (StandardScaler(), MinMaxScaler(), PolynomialFeatures(2))]
    pca = PCA(2, svd_solver="full").fit(table)
    return (steps, abs(pca.transform(table)), pca.explained_variance_ratio_, OneHotEncoder().fit_transform(
        i.reshape(-1, 1)), KMeans(3, n_init=1, random_state=0).fit_predict(table), DBSCAN(1.0).fit_predict(table))


@sklearn("``train_test_split``, ``cross_val_score``, ``GridSearchCV``, ``Pipeline``", copies="in between")
def test_selection(table, target, classes):
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    parts = train_test_split(table, target, random_state=0)
    pipeline = make_pipeline(StandardScaler(), Ridge())
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3).fit(table, classes)
    return (parts, cross_val_score(pipeline, table, target, cv=KFold(3)), pipeline.fit(parts[0], parts[2]).score(
        parts[1], parts[3]), search.best_params_, search.best_score_, search.predict(table))


@sklearn("metrics: ``mean_squared_error``, ``accuracy_score``, ``confusion_matrix``, ``roc_auc_score``, "
         "``pairwise_distances``", copies="in between")
def test_metrics(table, target, classes):
    from sklearn import metrics

    return (metrics.mean_squared_error(target, target * 1.1), metrics.accuracy_score(classes, 1 - classes),
            metrics.confusion_matrix(classes, classes), metrics.roc_auc_score(classes, target), metrics.r2_score(
                target, target + 1), metrics.pairwise_distances(table)[:3], metrics.silhouette_score(table, classes))


@sklearn("``set_config(array_api_dispatch=True)``: scalers, ``Ridge``, PCA, metrics", copies="in between",
         tolerance=1e-7)
def test_array_api_dispatch(table, target):
    # scikit-learn reads SCIPY_ARRAY_API of SciPy before it agrees to dispatch: another process has it
    return in_array_api_mode("""
        import sklearn
        from sklearn.decomposition import PCA
        from sklearn.linear_model import Ridge
        from sklearn.metrics import mean_squared_error, r2_score
        from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

        with sklearn.config_context(array_api_dispatch=True):
            results = [step.fit_transform(table) for step in (MaxAbsScaler(), MinMaxScaler(), StandardScaler())]
            model = Ridge(solver="svd").fit(table, target)
            results += [model.predict(table), r2_score(target, target * 1.1), mean_squared_error(target, target * 2)]
            results += [abs(PCA(2, svd_solver="full").fit_transform(table))]
        """, table=table, target=target)


@networkx("``from_numpy_array(x)``, ``to_numpy_array``, ``pagerank``, ``shortest_path``, ``spring_layout``",
          copies="in between")
def test_graphs(graph):
    import networkx as nx

    whole = nx.from_numpy_array(graph)
    return (sorted(whole.edges(data="weight")), nx.to_numpy_array(whole), nx.pagerank(whole),
            dict(nx.shortest_path_length(
        whole, 0)), list(nx.spring_layout(whole, seed=1).values()), [len(c) for c in nx.connected_components(whole)])


@networkx("nodes, positions and weights from lazy arrays", copies="in between")
def test_graph_parts(x, i):
    import networkx as nx

    whole = nx.Graph()
    whole.add_weighted_edges_from(zip(i[:50], i[50:], x))
    nx.set_node_attributes(whole, dict(zip(i, x)), "value")
    return sorted(whole.edges(data="weight")), sorted(whole.nodes(data="value")), nx.degree_centrality(whole)


@scipy("``SCIPY_ARRAY_API=1``: ``special``, ``stats``, ``ndimage``, ``signal``, ``linalg``, ``cluster``, ``fft``",
       copies="in between", tolerance=1e-7)
def test_scipy_array_api(x, y, image, table):
    return in_array_api_mode("""
        from scipy import cluster, fft, linalg, ndimage, signal, special, stats

        results = [special.erf(x), special.logsumexp(x), stats.zscore(x), stats.ttest_ind(x, y).pvalue,
                   ndimage.gaussian_filter(image, 1), signal.convolve(x, y[:5]), abs(fft.rfft(x)),
                   linalg.norm(table), cluster.vq.whiten(table), stats.skew(x), special.softmax(x)]
        """, x=x, y=y, image=image, table=table)


@sympy("``Symbol(\"x\") + s`` of lazy scalars, ``Matrix(x)``, ``lambdify(...)(x)``", copies="each once")
def test_sympy(i, x, matrix):
    import sympy

    symbol = sympy.Symbol("x")
    return (str(symbol + i[0]), str(i[1] * symbol), str(sympy.sympify(x[0])), str(sympy.binomial(i[2], 2)),
            sympy.Matrix(matrix).shape, sympy.lambdify(symbol, sympy.sin(symbol) ** 2)(x))


_answers = {}


def in_array_api_mode(code, **arrays):
    """The results of `code` with SCIPY_ARRAY_API=1, which SciPy reads when it is imported: in another process."""
    if code not in _answers:    # on ndarrays and on lazy arrays at once, since a process takes longer than the calls
        program = textwrap.dedent("""
            import pickle, sys, warnings
            warnings.simplefilter("ignore")
            import numpy as np, lazyarray
            arrays, answers = pickle.load(sys.stdin.buffer), []
            for make in (np.asarray, lazyarray.asarray):
                globals().update({k: make(v) for k, v in arrays.items()})
                exec(sys.argv[1])
                answers.append([np.asarray(r) for r in results])
            pickle.dump(answers, sys.stdout.buffer)
            """)
        done = subprocess.run([sys.executable, "-c", program, textwrap.dedent(code)], capture_output=True, check=False,
                              input=pickle.dumps({k: np.asarray(v) for k, v in arrays.items()}),
                              cwd=Path(__file__).parents[2], env=os.environ | {"SCIPY_ARRAY_API": "1"})
        assert done.returncode == 0, done.stderr.decode()
        _answers[code] = pickle.loads(done.stdout)
    return _answers[code][any(lazyarray.is_lazy(a) for a in arrays.values())]


def test_the_bytes_are_not_copied_again_by_the_next_estimator():
    linear_model = pytest.importorskip("sklearn.linear_model")
    x = lazyarray.asarray(np.arange(24.0).reshape(12, 2))
    y = lazyarray.asarray(np.arange(12.0))
    linear_model.Ridge().fit(x, y)
    with lazyarray.trace() as trace:
        np.asarray(x), np.asarray(y)
    assert trace.nbytes == 0
