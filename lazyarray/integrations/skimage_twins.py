"""The twins of scikit-image's functions in cuCIM, and the functions that are none although they have the name."""
from __future__ import annotations

from .twins import Twin, twins

_COLOR = twins(
    "skimage.color", "cucim.skimage.color",
    "combine_stains convert_colorspace deltaE_cie76 deltaE_ciede2000 deltaE_ciede94 deltaE_cmc gray2rgb gray2rgba "
    "hed2rgb hsv2rgb lab2lch lab2rgb lab2xyz label2rgb lch2lab luv2rgb luv2xyz rgb2gray rgb2hed rgb2hsv rgb2lab "
    "rgb2luv rgb2rgbcie rgb2xyz rgb2ycbcr rgb2ydbdr rgb2yiq rgb2ypbpr rgb2yuv rgba2rgb rgbcie2rgb separate_stains "
    "xyz2lab xyz2luv xyz2rgb ycbcr2rgb ydbdr2rgb yiq2rgb ypbpr2rgb yuv2rgb",
)
_EXPOSURE = twins(
    "skimage.exposure", "cucim.skimage.exposure",
    "adjust_gamma adjust_log adjust_sigmoid cumulative_distribution equalize_adapthist equalize_hist histogram "
    "is_low_contrast match_histograms rescale_intensity",
)
_FEATURE = twins(
    "skimage.feature", "cucim.skimage.feature",
    "blob_dog blob_doh blob_log canny corner_foerstner corner_harris corner_kitchen_rosenfeld corner_peaks "
    "corner_shi_tomasi daisy hessian_matrix hessian_matrix_det hessian_matrix_eigvals match_descriptors "
    "match_template multiscale_basic_features peak_local_max shape_index structure_tensor "
    "structure_tensor_eigenvalues",
)
_FILTERS = twins(
    "skimage.filters", "cucim.skimage.filters",
    "apply_hysteresis_threshold butterworth difference_of_gaussians farid farid_h farid_v frangi gabor gaussian "
    "hessian laplace median meijering prewitt prewitt_h prewitt_v rank_order roberts roberts_neg_diag "
    "roberts_pos_diag sato scharr scharr_h scharr_v sobel sobel_h sobel_v threshold_isodata threshold_li "
    "threshold_local threshold_mean threshold_minimum threshold_multiotsu threshold_niblack threshold_otsu "
    "threshold_sauvola threshold_triangle threshold_yen unsharp_mask",
    writes=("out",),
)
_MEASURE = twins(
    "skimage.measure", "cucim.skimage.measure",
    "block_reduce blur_effect centroid euler_number inertia_tensor inertia_tensor_eigvals intersection_coeff label "
    "manders_coloc_coeff manders_overlap_coeff moments moments_central moments_coords moments_coords_central "
    "moments_hu moments_normalized pearson_corr_coeff perimeter perimeter_crofton profile_line shannon_entropy",
)
_METRICS = twins(
    "skimage.metrics", "cucim.skimage.metrics",
    "adapted_rand_error mean_squared_error normalized_mutual_information normalized_root_mse "
    "peak_signal_noise_ratio structural_similarity variation_of_information",
)
_MORPHOLOGY = twins(
    "skimage.morphology", "cucim.skimage.morphology",
    "black_tophat closing convex_hull_image convex_hull_object dilation erosion h_maxima h_minima isotropic_closing "
    "isotropic_dilation isotropic_erosion isotropic_opening local_maxima local_minima medial_axis opening "
    "reconstruction remove_small_holes remove_small_objects thin white_tophat",
    writes=("out",),
)
_REGISTRATION = twins(
    "skimage.registration", "cucim.skimage.registration", "optical_flow_ilk optical_flow_tvl1 phase_cross_correlation")
_RESTORATION = twins(
    "skimage.restoration", "cucim.skimage.restoration", "denoise_tv_chambolle richardson_lucy rolling_ball wiener")
_SEGMENTATION = twins(
    "skimage.segmentation", "cucim.skimage.segmentation",
    "chan_vese clear_border expand_labels find_boundaries inverse_gaussian_gradient join_segmentations "
    "mark_boundaries morphological_chan_vese morphological_geodesic_active_contour random_walker",
    writes=("out",),
)
_TRANSFORM = twins(
    "skimage.transform", "cucim.skimage.transform",
    "downscale_local_mean integral_image integrate pyramid_expand pyramid_reduce rescale resize resize_local_mean "
    "rotate swirl warp warp_polar",
)
_UTIL = twins(
    "skimage.util", "cucim.skimage.util",
    "compare_images crop img_as_bool img_as_float img_as_float32 img_as_float64 img_as_int img_as_ubyte img_as_uint "
    "invert map_array montage view_as_blocks view_as_windows",
    writes=("out",),
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
    "draws other random numbers": "restoration.unsupervised_wiener util.random_noise",
    "returns a sparse matrix": "metrics.contingency_table",
    "calls a function of the caller's": "filters.filter_forward filters.filter_inverse filters.wiener "
                                        "restoration.calibrate_denoiser restoration.denoise_invariant",
    "plots": "filters.try_all_threshold",
    "is about a few points": "measure.approximate_polygon measure.subdivide_polygon transform.estimate_transform "
                             "transform.matrix_transform",
}
_PLACES = {"feature.draw_haar_like_feature": (), "morphology.flood_fill": (), "segmentation.flood_fill": ()}

HOST_ONLY: dict[str, Twin] = {}
for _module, _names in _MISSING.items():
    HOST_ONLY |= twins(f"skimage.{_module}", f"cucim.skimage.{_module}", _names, reason="cuCIM has no such function")
for _reason, _names in _OTHERWISE.items():
    for _name in _names.split():
        HOST_ONLY[f"skimage.{_name}"] = Twin(f"skimage.{_name}", f"cucim.skimage.{_name}", reason=f"cuCIM's {_reason}")

WITHOUT_ARRAYS: dict[str, str] = {
    "skimage.color": "xyz_tristimulus_values",
}

TWINS: dict[str, Twin] = (
    _COLOR | _EXPOSURE | _FEATURE | _FILTERS | _MEASURE | _METRICS | _MORPHOLOGY | _REGISTRATION | _RESTORATION
    | _SEGMENTATION | _TRANSFORM | _UTIL | HOST_ONLY
)
