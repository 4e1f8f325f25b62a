"""The twins of scikit-image's functions in cuCIM, and the functions that are none although they have the name.

What is bounded, prepared or left out here was found by running scikit-image's own tests with each call made again by
cuCIM 26.10 on one H200: ``tests/tools/shadow.py`` does it, ``benchmarks/results/skimage_twins.json`` has what it found.
Results agree within `_TOLERANCE`, unless a twin states another.
"""
from __future__ import annotations

from typing import Any

from ..routing.twin import Tolerance, Twin
from . import steps
from .steps import Prepared

_WIDE = "ilqILQfd"
"""Dtypes of images that cuCIM computes with in the precision that scikit-image does: no small integers, no float16."""

_ALL = "?bhBH" + _WIDE
_FLOATS = "fd"
_NOT_SINGLE = _ALL.replace("f", "")


def _twins(module: str, names: str, **bounds: Any) -> dict[str, Twin]:
    kind = Prepared if bounds.keys() & {"before", "after"} else Twin
    bounds = {"dtypes": _ALL, "tolerance": _TOLERANCE, **bounds}
    device = bounds.pop("device", f"cucim.skimage.{module}")
    return {f"skimage.{module}.{name}": kind(f"skimage.{module}.{name}", f"{device}.{name}", **bounds)
            for name in names.split()}


_TOLERANCE = Tolerance(single=1e-5, double=1e-8)
"""Sums in another order, and Fourier transforms."""

_OURS = f"{__package__}.filters"
"""What scikit-image makes of SciPy's filters, made of ours: their results are the same bits, which cuCIM's are not."""

_EIGENVALUES = Tolerance(single=1e-5, double=1e-5)
_LOOSE = Tolerance(single=1e-4, double=1e-4)
_PYRAMID = Tolerance(single=1e-3, double=1e-8)
_EDGES = Tolerance(single=1e-5, double=1e-8, ties=0.02)

_COLOR = (
    _twins("color", "gray2rgb gray2rgba rgba2rgb")
    | _twins("color", "deltaE_cie76 deltaE_ciede94 lab2lch lch2lab", dtypes=_WIDE)
    | _twins("color", "ycbcr2rgb", dtypes=_FLOATS)
    | _twins("color", "convert_colorspace lab2rgb lab2xyz luv2rgb luv2xyz xyz2lab xyz2luv xyz2rgb ydbdr2rgb yiq2rgb "
                      "ypbpr2rgb yuv2rgb rgbcie2rgb rgb2gray rgb2hsv rgb2lab rgb2luv rgb2rgbcie rgb2xyz rgb2ycbcr "
                      "rgb2ydbdr rgb2yiq rgb2ypbpr rgb2yuv hsv2rgb", before=steps.scaled())
    # scikit-image's matrices of stains are double, and make the result so.
    | _twins("color", "rgb2hed separate_stains hed2rgb combine_stains", before=steps.scaled(), dtypes=_NOT_SINGLE)
)
_EXPOSURE = (
    _twins("exposure", "adjust_log histogram is_low_contrast")
    | _twins("exposure", "adjust_gamma", dtypes="?Bfd")
    | _twins("exposure", "adjust_sigmoid", dtypes="?bhiBHIfd")
    | _twins("exposure", "match_histograms", dtypes=_WIDE)
    | _twins("exposure", "cumulative_distribution", dtypes=_NOT_SINGLE)
    | _twins("exposure", "equalize_hist", dtypes=_WIDE)
    | _twins("exposure", "equalize_adapthist", before=steps.scaled("image"))
    | _twins("exposure", "rescale_intensity", dtypes="?bhiBHIfd", conditions=(steps.keeps_dtype,))
)
_FEATURE = (
    _twins("feature", "corner_foerstner corner_harris corner_shi_tomasi shape_index", before=steps.scaled("image"))
    | _twins("feature", "daisy", before=steps.scaled("image"), lacks={"visualize": (True,)})
    | _twins("feature", "structure_tensor", before=steps.scaled("image"), conditions=(steps.wider_than_filter,))
    | _twins("feature", "hessian_matrix", before=steps.scaled("image"), conditions=(steps.wider_than_filter,),
             lacks={"use_gaussian_derivatives": (True,)})
    | _twins("feature", "hessian_matrix_det", before=steps.scaled("image"), dtypes=_NOT_SINGLE,
             conditions=(steps.wider_than_filter,))
    | _twins("feature", "corner_kitchen_rosenfeld", before=steps.kept("image"))
    # An edge is where the gradient is no smaller than on either side. In an artificial image, such as a checkerboard,
    # neighbours' gradients are equal but for rounding: scikit-image's own edges move there as the last bit does.
    | _twins("feature", "canny", before=steps.thresholds_of_canny, tolerance=_EDGES)
    | _twins("feature", "multiscale_basic_features", dtypes=_FLOATS)
    | _twins("feature", "corner_peaks hessian_matrix_eigvals peak_local_max structure_tensor_eigenvalues")
)
_FILTERS = (
    _twins("filters", "farid prewitt scharr sobel", before=steps.scaled("image"), lacks={"cval": None})
    | _twins("filters",
             "farid_h farid_v laplace prewitt_h prewitt_v roberts scharr_h scharr_v sobel_h "
             "sobel_v", before=steps.scaled("image"))
    | _twins("filters", "butterworth", before=steps.kept("image"), dtypes=_ALL + "FD")
    | _twins("filters", "meijering sato", before=steps.kept("image"), tolerance=_EIGENVALUES)
    | _twins("filters", "gabor", dtypes=_ALL.replace("?", ""))
    | _twins("filters", "correlate_sparse", dtypes=_WIDE)
    | _twins("filters", "gaussian", device=_OURS, writes=("out",))
    | _twins("filters", "difference_of_gaussians", device=_OURS)
    | _twins("filters", "unsharp_mask", device=_OURS, conditions=(steps.no_negative_axis,))
    | _twins("filters", "threshold_niblack", before=steps.kept("image"))
    | _twins("filters", "threshold_local", before=steps.kept("image"), conditions=(steps.no_callable("param"),))
    | _twins("filters", "threshold_sauvola", before=steps.range_of_sauvola)
    | _twins("filters", "threshold_li", lacks={"initial_guess": None, "iter_callback": None})
    | _twins("filters",
             "threshold_isodata threshold_mean threshold_minimum "
             "threshold_multiotsu threshold_otsu threshold_triangle threshold_yen")
    | _twins("filters", "median", writes=("out",), lacks={"behavior": ("rank",)})
)
_MEASURE = (
    _twins("measure", "centroid inertia_tensor moments moments_central", before=steps.kept("image"))
    | _twins("measure", "inertia_tensor_eigvals", before=steps.kept("image"), after=steps.as_list)
    | _twins("measure", "label", after=steps.labels, conditions=(steps.dimensions("label_image", 3, "?"),))
    | _twins("measure", "regionprops", adapter="skimage.regionprops:regions")
    | _twins("measure", "block_reduce", conditions=(steps.numpy_function("func"),), lacks={"func_kwargs": None})
    | _twins("measure", "profile_line", conditions=(steps.numpy_function("reduce_func"),))
    | _twins("measure", "manders_overlap_coeff", dtypes="fd")
    | _twins("measure", "pearson_corr_coeff", after=steps.last_is_float, dtypes=_NOT_SINGLE)
    | _twins("measure",
             "euler_number intersection_coeff manders_coloc_coeff moments_coords moments_hu perimeter "
             "perimeter_crofton shannon_entropy")
)
_METRICS = (
    _twins("metrics", "adapted_rand_error normalized_mutual_information variation_of_information")
    | _twins("metrics", "mean_squared_error", before=steps.kept("image0", "image1"))
    | _twins("metrics", "normalized_root_mse", before=steps.kept("image_true", "image_test"))
    | _twins("metrics", "peak_signal_noise_ratio", dtypes="?B" + _WIDE)
    | _twins("metrics", "structural_similarity", before=steps.range_of_similarity, tolerance=_LOOSE,
             conditions=(steps.says_data_range,))
)
_MORPHOLOGY = (
    _twins("morphology",
           "black_tophat closing dilation erosion isotropic_dilation local_maxima local_minima "
           "opening remove_small_holes remove_small_objects thin white_tophat", writes=("out",))
    | _twins("morphology", "convex_hull_image", after=steps.as_booleans)
    | _twins("morphology", "convex_hull_object", conditions=(steps.dimensions("image", 2),))
    | _twins("morphology", "reconstruction", before=steps.doubled("seed", "mask"))
    | _twins("morphology", "h_maxima h_minima")
)
_REGISTRATION = (
    _twins("registration", "optical_flow_ilk", tolerance=_LOOSE)
    | _twins("registration", "phase_cross_correlation", after=steps.shifts, dtypes=_ALL + "FD",
             lacks={"reference_mask": None, "moving_mask": None})
)
_RESTORATION = (
    _twins("restoration", "denoise_tv_chambolle", before=steps.scaled("image"))
    | _twins("restoration", "richardson_lucy wiener", before=steps.kept("image", "psf"))
    | _twins("restoration", "rolling_ball")
)
_SEGMENTATION = (
    _twins("segmentation", "clear_border find_boundaries", writes=("out",))
    | _twins("segmentation", "chan_vese", before=steps.kept("image"))
    | _twins("segmentation", "inverse_gaussian_gradient", dtypes=_FLOATS)
    | _twins("segmentation", "join_segmentations", lacks={"return_mapping": (True,)})
    | _twins("segmentation", "morphological_geodesic_active_contour", lacks={"iter_callback": None})
)
_TRANSFORM = (
    _twins("transform", "rescale resize", before=steps.interpolated)
    | _twins("transform", "rotate swirl warp_polar", before=steps.interpolated, conditions=(steps.linear,))
    | _twins("transform", "warp", before=steps.warped, conditions=(steps.maps_by_array, steps.linear))
    | _twins("transform", "pyramid_expand pyramid_reduce resize_local_mean", before=steps.ranged)
    | _twins("transform", "pyramid_gaussian pyramid_laplacian", before=steps.ranged,
             adapter="skimage.regionprops:levels",
             tolerance=_PYRAMID)
    | _twins("transform", "downscale_local_mean integral_image integrate")
)
_UTIL = (
    _twins("util",
           "crop img_as_bool img_as_float32 img_as_float64 img_as_int img_as_ubyte img_as_uint invert montage "
           "view_as_blocks view_as_windows")
    | _twins("util", "img_as_float", before=steps.scaled("image"))
    | _twins("util", "compare_images", before=steps.scaled("image0", "image1"))
    | _twins("util", "map_array", writes=("out",), lacks={"out": None})
)

# -- on the host, and no part of the way there on the device ----------------------------------------

_MISSING = {
    "feature": "corner_fast corner_moravec corner_orientations corner_subpix draw_haar_like_feature "
               "draw_multiblock_lbp fisher_vector graycomatrix graycoprops haar_like_feature hog learn_gmm "
               "local_binary_pattern multiblock_lbp",
    "filters.rank": "otsu windowed_histogram",
    "measure": "find_contours grid_points_in_poly marching_cubes mesh_surface_area points_in_poly",
    "metrics": "hausdorff_distance hausdorff_pair",
    "morphology": "area_closing area_opening diameter_closing diameter_opening flood flood_fill max_tree "
                  "max_tree_local_maxima remove_objects_by_distance skeletonize",
    "restoration": "cycle_spin denoise_bilateral denoise_nl_means denoise_tv_bregman denoise_wavelet estimate_sigma "
                   "inpaint_biharmonic unwrap_phase",
    "segmentation": "active_contour felzenszwalb flood flood_fill quickshift slic watershed",
    "transform": "frt2 hough_circle hough_circle_peaks hough_ellipse hough_line hough_line_peaks ifrt2 iradon "
                 "iradon_sart probabilistic_hough_line radon",
    "util": "label_points unique_rows",
}
_OTHERWISE = {
    "differs by 1e-3 and more": "color.deltaE_ciede2000 color.deltaE_cmc",
    "returns other colours in another precision": "color.label2rgb",
    "runs on the host too": "feature.match_descriptors",
    "differs for a constant image or template": "feature.match_template",
    "writes into its argument": "measure.moments_coords_central",
    "returns zeros instead of NaN": "measure.moments_normalized",
    "differs by several percent": "filters.frangi filters.hessian measure.blur_effect "
                                  "registration.optical_flow_tvl1 segmentation.mark_boundaries "
                                  "segmentation.morphological_chan_vese segmentation.random_walker",
    "differs at the border": "morphology.isotropic_closing morphology.isotropic_erosion morphology.isotropic_opening",
    "computes its histograms differently": " ".join(f"filters.rank.{name}" for name in (
        "entropy equalize geometric_mean gradient_percentile majority mean mean_bilateral mean_percentile median modal "
        "noise_filter pop pop_bilateral pop_percentile subtract_mean subtract_mean_percentile sum sum_bilateral "
        "sum_percentile threshold").split()),
    "returns other dtypes": "measure.regionprops_table",
    "chooses differently between equally near labels": "segmentation.expand_labels",
    "returns its own type of maps": "segmentation.relabel_sequential",
    "draws other random numbers": "morphology.medial_axis restoration.unsupervised_wiener util.random_noise",
    "returns a sparse matrix": "metrics.contingency_table",
    "calls a function passed as an argument": "filters.filter_forward filters.filter_inverse filters.wiener "
                                        "restoration.calibrate_denoiser restoration.denoise_invariant",
    "plots": "filters.try_all_threshold",
    # They agree with it on a grid of dtypes and shapes, which is less.
    "has not been run through scikit-image's tests": "feature.blob_dog feature.blob_doh feature.blob_log "
        "filters.apply_hysteresis_threshold filters.rank_order " + " ".join(f"filters.rank.{name}" for name in (
            "autolevel autolevel_percentile enhance_contrast enhance_contrast_percentile gradient maximum minimum "
            "percentile threshold_percentile").split()),
    "is not tested by scikit-image": "filters.roberts_neg_diag filters.roberts_pos_diag",
    "works on a few points": "measure.approximate_polygon measure.subdivide_polygon transform.estimate_transform "
                             "transform.matrix_transform",
}
HOST_ONLY: dict[str, Twin] = {}
for _module, _names in _MISSING.items():
    HOST_ONLY |= _twins(_module, _names, reason="cuCIM has no such function", writes=("out",))
for _reason, _names in _OTHERWISE.items():
    for _name in _names.split():
        HOST_ONLY |= _twins(*_name.rsplit(".", 1), reason=f"cuCIM's function {_reason}", writes=("out",))

# They may be asked to write into the image itself.
for _name in ("morphology.flood_fill", "segmentation.flood_fill", "transform.iradon_sart"):
    HOST_ONLY |= _twins(*_name.rsplit(".", 1), reason="cuCIM has no such function", writes=("image",))

TWINS: dict[str, Twin] = (
    _COLOR | _EXPOSURE | _FEATURE | _FILTERS | _MEASURE | _METRICS | _MORPHOLOGY | _REGISTRATION | _RESTORATION
    | _SEGMENTATION | _TRANSFORM | _UTIL | HOST_ONLY
)
