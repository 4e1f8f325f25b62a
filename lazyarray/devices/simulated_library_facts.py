"""What CuPy 14.2.0 has of SciPy, and cuCIM 26.10.00 of scikit-image: generated, not written by hand.

By ``tests/tools_library_facts.py``.

``FUNCTIONS`` maps a module to signatures, and each signature to the functions that have it.  ``UFUNCS`` maps a module
to (inputs, outputs, methods beside ``__call__`` and ``outer``), and those to universal functions.  ``CLASSES`` maps a
module to its classes.
"""

from __future__ import annotations

VERSIONS = {
    'cupy': '14.2.0',
    'cucim': '26.10.00',
}
FUNCTIONS = {
    'cucim.skimage.color': {
        '*, illuminant, observer, dtype=None': 'xyz_tristimulus_values',
        'arr, fromspace, tospace, *, channel_axis=-1': 'convert_colorspace',
        'hed, *, channel_axis=-1': 'hed2rgb',
        'hsv, *, channel_axis=-1': 'hsv2rgb',
        'image, *, channel_axis=-1': 'gray2rgb',
        'image, alpha=None, *, channel_axis=-1, check_alpha=True': 'gray2rgba',
        'lab, *, channel_axis=-1': 'lab2lch',
        "lab, illuminant='D65', observer='2', *, channel_axis=-1": 'lab2rgb lab2xyz',
        'lab1, lab2, channel_axis=-1': 'deltaE_cie76',
        (
            'lab1, lab2, kH=1, kC=1, kL=1, k1=0.045, k2=0.015, *, channel_axis=-1'
        ): 'deltaE_ciede94',
        'lab1, lab2, kL=1, kC=1, *, channel_axis=-1': 'deltaE_cmc',
        'lab1, lab2, kL=1, kC=1, kH=1, *, channel_axis=-1': 'deltaE_ciede2000',
        (
            'label, image=None, colors=None, alpha=0.3, bg_label=0, bg_color=(0, 0, 0), image_alpha=1, '
            "kind='overlay', *, saturation=0, channel_axis=-1"
        ): 'label2rgb',
        'lch, *, channel_axis=-1': 'lch2lab',
        'luv, *, channel_axis=-1': 'luv2rgb',
        "luv, illuminant='D65', observer='2', *, channel_axis=-1": 'luv2xyz',
        'rgb, *, channel_axis=-1': (
            'rgb2gray rgb2hed rgb2hsv rgb2luv rgb2rgbcie rgb2xyz rgb2ycbcr rgb2ydbdr rgb2yiq rgb2ypbpr rgb2yuv'
        ),
        'rgb, conv_matrix, *, channel_axis=-1': 'separate_stains',
        "rgb, illuminant='D65', observer='2', *, channel_axis=-1": 'rgb2lab',
        'rgba, background=(1, 1, 1), *, channel_axis=-1': 'rgba2rgb',
        'rgbcie, *, channel_axis=-1': 'rgbcie2rgb',
        'stains, conv_matrix, *, channel_axis=-1': 'combine_stains',
        'xyz, *, channel_axis=-1': 'xyz2rgb',
        "xyz, illuminant='D65', observer='2', *, channel_axis=-1": 'xyz2lab xyz2luv',
        'ycbcr, *, channel_axis=-1': 'ycbcr2rgb',
        'ydbdr, *, channel_axis=-1': 'ydbdr2rgb',
        'yiq, *, channel_axis=-1': 'yiq2rgb',
        'ypbpr, *, channel_axis=-1': 'ypbpr2rgb',
        'yuv, *, channel_axis=-1': 'yuv2rgb',
    },
    'cucim.skimage.exposure': {
        'image, cutoff=0.5, gain=10, inv=False': 'adjust_sigmoid',
        (
            "image, fraction_threshold=0.05, lower_percentile=1, upper_percentile=99, method='linear'"
        ): 'is_low_contrast',
        'image, gain=1, inv=False': 'adjust_log',
        'image, gamma=1, gain=1': 'adjust_gamma',
        "image, in_range='image', out_range='dtype'": 'rescale_intensity',
        'image, kernel_size=None, clip_limit=0.01, nbins=256': 'equalize_adapthist',
        'image, nbins=256': 'cumulative_distribution',
        'image, nbins=256, mask=None': 'equalize_hist',
        (
            "image, nbins=256, source_range='image', normalize=False, *, channel_axis=None"
        ): 'histogram',
        'image, reference, *, channel_axis=None': 'match_histograms',
    },
    'cucim.skimage.feature': {
        'A_elems': 'structure_tensor_eigenvalues',
        'H_elems': 'hessian_matrix_eigvals',
        (
            'descriptors1, descriptors2, metric=None, p=2, max_distance=inf, cross_check=True, max_ratio=1.0'
        ): 'match_descriptors',
        (
            'image, intensity=True, edges=True, texture=True, sigma_min=0.5, sigma_max=16, num_sigma=None, '
            'workers=None, *, channel_axis=None'
        ): 'multiscale_basic_features',
        "image, method='k', k=0.05, eps=1e-06, sigma=1": 'corner_harris',
        (
            'image, min_distance=1, threshold_abs=None, threshold_rel=None, exclude_border=True, indices=True, '
            'num_peaks=inf, footprint=None, labels=None, *, num_peaks_per_label=inf, p_norm=inf'
        ): 'corner_peaks',
        (
            'image, min_distance=1, threshold_abs=None, threshold_rel=None, exclude_border=True, num_peaks=inf, '
            'footprint=None, labels=None, num_peaks_per_label=inf, p_norm=inf'
        ): 'peak_local_max',
        (
            'image, min_sigma=1, max_sigma=30, num_sigma=10, threshold=0.01, overlap=0.5, log_scale=False, *, '
            'threshold_rel=None'
        ): 'blob_doh',
        (
            'image, min_sigma=1, max_sigma=50, num_sigma=10, threshold=0.2, overlap=0.5, log_scale=False, *, '
            'threshold_rel=None, exclude_border=False'
        ): 'blob_log',
        (
            'image, min_sigma=1, max_sigma=50, sigma_ratio=1.6, threshold=0.5, overlap=0.5, *, threshold_rel=None, '
            'exclude_border=False'
        ): 'blob_dog',
        "image, mode='constant', cval=0": 'corner_kitchen_rosenfeld',
        'image, sigma=1': 'corner_foerstner corner_shi_tomasi',
        'image, sigma=1, approximate=True': 'hessian_matrix_det',
        "image, sigma=1, mode='constant', cval=0": 'shape_index',
        "image, sigma=1, mode='constant', cval=0, order='rc'": 'structure_tensor',
        (
            "image, sigma=1, mode='constant', cval=0, order='rc', use_gaussian_derivatives=None"
        ): 'hessian_matrix',
        (
            'image, sigma=1.0, low_threshold=None, high_threshold=None, mask=None, use_quantiles=False, *, '
            "mode='constant', cval=0.0"
        ): 'canny',
        (
            "image, step=4, radius=15, rings=3, histograms=8, orientations=8, normalization='l1', sigmas=None, "
            'ring_radii=None, visualize=False'
        ): 'daisy',
        (
            "image, template, pad_input=False, mode='constant', constant_values=0"
        ): 'match_template',
    },
    'cucim.skimage.filters': {
        (
            'data, impulse_response=None, filter_params=None, K=0.25, predefined_filter=None'
        ): 'wiener',
        (
            'data, impulse_response=None, filter_params=None, max_gain=2, predefined_filter=None'
        ): 'filter_inverse',
        (
            'data, impulse_response=None, filter_params=None, predefined_filter=None'
        ): 'filter_forward',
        (
            'frequency, theta=0, bandwidth=1, sigma_x=None, sigma_y=None, n_stds=3, offset=0, dtype=None, *, '
            'float_dtype=None'
        ): 'gabor_kernel',
        'image': 'rank_order threshold_mean',
        'image, *, mask=None': 'farid_h farid_v',
        (
            'image, *, tolerance=None, initial_guess=None, iter_callback=None'
        ): 'threshold_li',
        (
            "image, block_size=3, method='gaussian', offset=0, mode='reflect', param=None, cval=0"
        ): 'threshold_local',
        (
            'image, cutoff_frequency_ratio=0.005, high_pass=True, order=2.0, channel_axis=None, *, '
            'squared_butterworth=True, npad=0'
        ): 'butterworth',
        'image, figsize=(8, 5), verbose=True': 'try_all_threshold',
        (
            "image, footprint=None, out=None, mode='nearest', cval=0.0, behavior='ndimage', algorithm='auto', "
            'algorithm_kwargs=None'
        ): 'median',
        (
            'image, frequency, theta=0, bandwidth=1, sigma_x=None, sigma_y=None, n_stds=3, offset=0, '
            "mode='reflect', cval=0"
        ): 'gabor',
        "image, kernel, mode='reflect'": 'correlate_sparse',
        'image, ksize=3, mask=None': 'laplace',
        'image, low, high': 'apply_hysteresis_threshold',
        (
            "image, low_sigma, high_sigma=None, *, mode='nearest', cval=0, channel_axis=None, truncate=4.0"
        ): 'difference_of_gaussians',
        'image, mask=None': (
            'prewitt_h prewitt_v roberts roberts_neg_diag roberts_pos_diag scharr_h scharr_v sobel_h sobel_v'
        ),
        "image, mask=None, *, axis=None, mode='reflect', cval=0.0": 'farid prewitt scharr sobel',
        'image, nbins=256': 'threshold_triangle',
        (
            'image, radius=1.0, amount=1.0, preserve_range=False, *, channel_axis=None'
        ): 'unsharp_mask',
        (
            "image, sigma=1, mode='nearest', cval=0, preserve_range=False, truncate=4.0, *, channel_axis=None, "
            'out=None'
        ): 'gaussian',
        (
            "image, sigmas=None, alpha=None, black_ridges=True, mode='reflect', cval=0"
        ): 'meijering',
        "image, sigmas=None, black_ridges=True, mode='reflect', cval=0": 'sato',
        (
            'image, sigmas=None, scale_range=None, scale_step=None, alpha=0.5, beta=0.5, gamma=15, '
            "black_ridges=True, mode='reflect', cval=0"
        ): 'hessian',
        (
            'image, sigmas=None, scale_range=None, scale_step=None, alpha=0.5, beta=0.5, gamma=None, '
            "black_ridges=True, mode='reflect', cval=0"
        ): 'frangi',
        'image, window_size=15, k=0.2': 'threshold_niblack',
        'image, window_size=15, k=0.2, r=None': 'threshold_sauvola',
        'image=None, classes=3, nbins=256, *, hist=None': 'threshold_multiotsu',
        'image=None, nbins=256, *, hist=None': 'threshold_otsu threshold_yen',
        'image=None, nbins=256, max_num_iter=10000, *, hist=None': 'threshold_minimum',
        'image=None, nbins=256, return_all=False, *, hist=None': 'threshold_isodata',
        'window_type, shape, warp_kwargs=None': 'window',
    },
    'cucim.skimage.filters.rank': {
        (
            "image, footprint, out=None, mask=None, shift_x=0, shift_y=0, p0=0, *, shifts=None, backend='auto', "
            'cast_to_uint8=True'
        ): 'percentile threshold_percentile',
        (
            'image, footprint, out=None, mask=None, shift_x=0, shift_y=0, p0=0, p1=1, *, shifts=None, '
            "backend='auto', cast_to_uint8=True"
        ): (
            'autolevel_percentile enhance_contrast_percentile gradient_percentile mean_percentile pop_percentile '
            'subtract_mean_percentile sum_percentile'
        ),
        (
            'image, footprint, out=None, mask=None, shift_x=0, shift_y=0, s0=10, s1=10, *, shifts=None, '
            "backend='auto', cast_to_uint8=True"
        ): 'mean_bilateral pop_bilateral sum_bilateral',
        (
            'image, footprint, out=None, mask=None, shift_x=0, shift_y=0, shift_z=0, *, shifts=None, '
            "backend='auto', cast_to_uint8=True"
        ): (
            'autolevel enhance_contrast entropy equalize geometric_mean gradient majority maximum mean minimum '
            'modal noise_filter pop subtract_mean sum threshold'
        ),
        (
            'image, footprint=None, out=None, mask=None, shift_x=0, shift_y=0, shift_z=0, *, shifts=None, '
            "backend='auto', cast_to_uint8=True"
        ): 'median',
    },
    'cucim.skimage.measure': {
        'coords, center=None, order=3': 'moments_coords_central',
        'coords, degree=2, preserve_ends=False': 'subdivide_polygon',
        'coords, order=3': 'moments_coords',
        'coords, tolerance': 'approximate_polygon',
        'image, *, spacing=None': 'centroid',
        'image, base=2': 'shannon_entropy',
        'image, block_size=2, func=None, cval=0, func_kwargs=None': 'block_reduce',
        'image, center=None, order=3, *, spacing=None, **kwargs': 'moments_central',
        'image, connectivity=None': 'euler_number',
        'image, directions=4': 'perimeter_crofton',
        'image, h_size=11, channel_axis=None, reduce_func=None': 'blur_effect',
        'image, mu=None, *, spacing=None': 'inertia_tensor',
        'image, mu=None, T=None, *, spacing=None': 'inertia_tensor_eigvals',
        'image, neighborhood=4': 'perimeter',
        'image, order=3, *, spacing=None': 'moments',
        (
            "image, src, dst, linewidth=1, order=None, mode='reflect', cval=0.0, reduce_func=None"
        ): 'profile_line',
        'image0, image1, mask=None': 'manders_overlap_coeff pearson_corr_coeff',
        'image0, image1_mask, mask=None': 'manders_coloc_coeff',
        'image0_mask, image1_mask, mask=None': 'intersection_coeff',
        (
            'label_image, background=None, return_num=False, connectivity=None'
        ): 'label',
        (
            'label_image, intensity_image=None, cache=True, *, extra_properties=None, spacing=None'
        ): 'regionprops',
        (
            "label_image, intensity_image=None, properties=('label', 'bbox'), *, cache=True, separator='-', "
            'extra_properties=None, spacing=None, batch_processing=True, to_table=True, copy_output_to_host=False'
        ): 'regionprops_table',
        'mu, order=3, spacing=None': 'moments_normalized',
        'nu': 'moments_hu',
    },
    'cucim.skimage.metrics': {
        (
            'im1, im2, *, win_size=None, gradient=False, data_range=None, channel_axis=None, '
            'gaussian_weights=False, full=False, **kwargs'
        ): 'structural_similarity',
        (
            "im_true, im_test, *, ignore_labels=None, normalize=False, sparse_type='matrix'"
        ): 'contingency_table',
        'image0, image1': 'mean_squared_error',
        'image0, image1, *, bins=100': 'normalized_mutual_information',
        'image0=None, image1=None, *, table=None, ignore_labels=()': 'variation_of_information',
        'image_true, image_test, *, data_range=None': 'peak_signal_noise_ratio',
        "image_true, image_test, *, normalization='euclidean'": 'normalized_root_mse',
        (
            'image_true=None, image_test=None, *, table=None, ignore_labels=(0,), alpha=0.5'
        ): 'adapted_rand_error',
    },
    'cucim.skimage.morphology': {
        'a, dtype=None': 'star',
        'ar, area_threshold=None, connectivity=1, max_size=64, out=None': 'remove_small_holes',
        'ar, min_size=None, connectivity=1, max_size=64, out=None': 'remove_small_objects',
        'footprints': 'footprint_from_sequence',
        (
            'image, *, connectivity=2, float64_computation=False, cpu_fallback_threshold=None'
        ): 'convex_hull_object',
        (
            'image, footprint=None, connectivity=None, indices=False, allow_borders=True'
        ): 'local_maxima local_minima',
        "image, footprint=None, out=None, *, mode='ignore'": (
            'binary_closing binary_dilation binary_erosion binary_opening'
        ),
        "image, footprint=None, out=None, *, mode='reflect', cval=0.0": (
            'black_tophat closing dilation erosion opening white_tophat'
        ),
        "image, h, footprint=None, *, reconstruct_on_cpu='auto'": 'h_maxima h_minima',
        'image, mask=None, return_distance=False, *, rng=None': 'medial_axis',
        'image, max_num_iter=None': 'thin',
        (
            'image, offset_coordinates=True, tolerance=1e-10, include_borders=True, *, '
            'omit_empty_coords_check=False, float64_computation=True, cpu_fallback_threshold=None'
        ): 'convex_hull_image',
        'image, radius, out=None, spacing=None': (
            'isotropic_closing isotropic_dilation isotropic_erosion isotropic_opening'
        ),
        'm, n, dtype=None, decomposition=None': 'octagon',
        'radius, dtype=None, decomposition=None': 'diamond octahedron',
        'radius, dtype=None, strict_radius=True, decomposition=None': 'ball disk',
        (
            "seed, mask, method='dilation', footprint=None, offset=None, *, reconstruct_on_cpu='auto'"
        ): 'reconstruction',
        'shape, dtype=None, decomposition=None': 'footprint_rectangle',
        'width, height, dtype=None, decomposition=None': 'ellipse',
    },
    'cucim.skimage.registration': {
        (
            "reference_image, moving_image, *, upsample_factor=1, space='real', disambiguate=False, "
            "reference_mask=None, moving_mask=None, overlap_ratio=0.3, normalization='phase'"
        ): 'phase_cross_correlation',
        (
            'reference_image, moving_image, attachment=15, tightness=0.3, num_warp=5, num_iter=10, tol=0.0001, '
            'prefilter=False, dtype=None'
        ): 'optical_flow_tvl1',
        (
            'reference_image, moving_image, radius=7, num_warp=10, gaussian=False, prefilter=False, dtype=None'
        ): 'optical_flow_ilk',
    },
    'cucim.skimage.restoration': {
        (
            'image, denoise_function, *, stride=4, masks=None, denoiser_kwargs=None'
        ): 'denoise_invariant',
        (
            'image, denoise_function, denoise_parameters, *, stride=4, approximate_loss=True, extra_output=False'
        ): 'calibrate_denoiser',
        'image, psf, balance, reg=None, is_real=True, clip=True': 'wiener',
        'image, psf, num_iter=50, clip=True, filter_epsilon=None': 'richardson_lucy',
        (
            'image, psf, reg=None, user_params=None, is_real=True, clip=True, *, rng=None'
        ): 'unsupervised_wiener',
        (
            'image, radius=100, kernel=None, nansafe=False, num_threads=None, workers=None, downscale=None'
        ): 'rolling_ball',
        (
            'image, weight=0.1, eps=0.0002, max_num_iter=200, *, channel_axis=None'
        ): 'denoise_tv_chambolle',
        'radius, ndim=2, dtype=None, structure_and_footprint=False': 'ball_kernel',
        'shape, intensity, dtype=None, structure_and_footprint=False': 'ellipsoid_kernel',
    },
    'cucim.skimage.segmentation': {
        (
            "data, labels, beta=130, mode='cg_j', tol=0.001, copy=True, return_full_prob=False, spacing=None, *, "
            'prob_tol=0.001, channel_axis=None'
        ): 'random_walker',
        (
            "gimage, num_iter, init_level_set='disk', smoothing=1, threshold='auto', balloon=0, iter_callback=None"
        ): 'morphological_geodesic_active_contour',
        'image, alpha=100.0, sigma=5.0': 'inverse_gaussian_gradient',
        (
            "image, label_img, color=(1, 1, 0), outline_color=None, mode='outer', background_label=0, *, order=3"
        ): 'mark_boundaries',
        (
            'image, mu=0.25, lambda1=1.0, lambda2=1.0, tol=0.001, max_num_iter=500, dt=0.5, '
            "init_level_set='checkerboard', extended_output=False"
        ): 'chan_vese',
        (
            "image, num_iter, init_level_set='checkerboard', smoothing=1, lambda1=1, lambda2=1, iter_callback=None"
        ): 'morphological_chan_vese',
        'image_shape, *, center=None, radius=None': 'disk_level_set',
        'image_shape, square_size=5': 'checkerboard_level_set',
        'label_field, offset=1': 'relabel_sequential',
        'label_image, distance=1, spacing=1': 'expand_labels',
        "label_img, connectivity=1, mode='thick', background=0": 'find_boundaries',
        'labels, buffer_size=0, bgval=0, mask=None, *, out=None': 'clear_border',
        's1, s2, return_mapping=False': 'join_segmentations',
    },
    'cucim.skimage.transform': {
        'coord_map, shape, dtype=None': 'warp_coords',
        'coords, matrix': 'matrix_transform',
        'ii, start, end': 'integrate',
        'image, *, dtype=None': 'integral_image',
        (
            "image, angle, resize=False, center=None, order=None, mode='constant', cval=0, clip=True, "
            'preserve_range=False'
        ): 'rotate',
        (
            "image, center=None, *, radius=None, output_shape=None, scaling='linear', channel_axis=None, **kwargs"
        ): 'warp_polar',
        (
            "image, center=None, strength=1, radius=100, rotation=0, output_shape=None, order=None, mode='reflect', "
            'cval=0, clip=None, preserve_range=False'
        ): 'swirl',
        (
            "image, downscale=2, sigma=None, order=1, mode='reflect', cval=0, preserve_range=False, *, "
            'channel_axis=None'
        ): 'pyramid_reduce',
        'image, factors, cval=0, clip=True': 'downscale_local_mean',
        (
            "image, inverse_map, map_args=None, output_shape=None, order=None, mode='constant', cval=0.0, "
            'clip=None, preserve_range=False, batch_axes=None'
        ): 'warp',
        (
            "image, max_layer=-1, downscale=2, sigma=None, order=1, mode='reflect', cval=0, preserve_range=False, "
            '*, channel_axis=None'
        ): 'pyramid_gaussian pyramid_laplacian',
        (
            'image, output_shape, grid_mode=True, preserve_range=False, *, channel_axis=None'
        ): 'resize_local_mean',
        (
            "image, output_shape, order=None, mode='reflect', cval=0, clip=None, preserve_range=False, "
            'anti_aliasing=None, anti_aliasing_sigma=None'
        ): 'resize',
        (
            "image, scale, order=None, mode='reflect', cval=0, clip=None, preserve_range=False, anti_aliasing=None, "
            'anti_aliasing_sigma=None, *, channel_axis=None'
        ): 'rescale',
        (
            "image, upscale=2, sigma=None, order=1, mode='reflect', cval=0, preserve_range=False, *, "
            'channel_axis=None'
        ): 'pyramid_expand',
        'ttype, src, dst, *args, **kwargs': 'estimate_transform',
    },
    'cucim.skimage.util': {
        "ar, crop_width, copy=False, order='K'": 'crop',
        'arr_in, block_shape': 'view_as_blocks',
        (
            "arr_in, fill='mean', rescale_intensity=False, grid_shape=None, padding_width=0, *, channel_axis=None, "
            'square_grid_default=True'
        ): 'montage',
        'arr_in, window_shape, step=1': 'view_as_windows',
        'image, clip_negative=False': 'dtype_limits',
        'image, force_copy=False': (
            'img_as_bool img_as_float img_as_float32 img_as_float64 img_as_int img_as_ubyte img_as_uint'
        ),
        "image, mode='gaussian', rng=None, clip=True, **kwargs": 'random_noise',
        'image, signed_float=False': 'invert',
        "image0, image1, *, method='diff', n_tiles=(8, 8)": 'compare_images',
        'input_arr, input_vals, output_vals, out=None': 'map_array',
    },
    'cupyx.scipy.fft': {
        'A, dln, mu, offset=0.0, bias=0.0': 'ifht',
        'a, dln, mu, offset=0.0, bias=0.0': 'fht',
        "a, shape=None, axes=None, value_type='C2C'": 'get_fft_plan',
        'n, d=1.0': 'fftfreq rfftfreq',
        'target, real=False': 'next_fast_len',
        'x, axes=None': 'fftshift ifftshift',
        'x, n=None, axis=-1, norm=None, overwrite_x=False, *, plan=None': 'fft hfft ifft ihfft irfft rfft',
        (
            'x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, *, plan=None'
        ): 'fft2 hfft2 ifft2 ihfft2 irfft2 rfft2',
        (
            'x, s=None, axes=None, norm=None, overwrite_x=False, *, plan=None'
        ): 'fftn hfftn ifftn ihfftn irfftn rfftn',
        'x, type=2, n=None, axis=-1, norm=None, overwrite_x=False': 'dct dst idct idst',
        'x, type=2, s=None, axes=None, norm=None, overwrite_x=False': 'dctn dstn idctn idstn',
    },
    'cupyx.scipy.interpolate': {
        (
            "points, values, xi, method='linear', bounds_error=True, fill_value=nan"
        ): 'interpn',
        'tck, n=1': 'splantider splder',
        'x, y, k=3, t=None, bc_type=None, axis=0, check_finite=True': 'make_interp_spline',
        (
            "x, y, t, k=3, w=None, axis=0, check_finite=True, *, method='qr'"
        ): 'make_lsq_spline',
        'xi, yi, x, axis=0': 'barycentric_interpolate',
        'xi, yi, x, der=0, axis=0': 'krogh_interpolate pchip_interpolate',
    },
    'cupyx.scipy.linalg': {
        '*arrs': 'block_diag',
        'a': 'bandwidth companion expm fiedler fiedler_companion',
        'a, b': 'khatri_rao kron',
        (
            'a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=False'
        ): 'solve_triangular',
        "a, n, mode='full'": 'convolution_matrix',
        'a, overwrite_a=False, check_finite=True': 'lu_factor',
        'a, permute_l=False, overwrite_a=False, check_finite=True': 'lu',
        'c': 'circulant',
        'c, r=None': 'hankel toeplitz',
        'f, s': 'leslie',
        'lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True': 'lu_solve',
        'n': 'hilbert',
        'n, dtype=None': 'hadamard',
        'n, full=False': 'helmert',
        'n, scale=None': 'dft',
    },
    'cupyx.scipy.ndimage': {
        'arr, *, ignore_value=None, adaptive_index_dtype=False': 'value_indices',
        (
            'image, sampling=None, return_distances=True, return_indices=False, distances=None, indices=None, *, '
            'block_params=None, float64_distances=True'
        ): 'distance_transform_edt',
        (
            "input, angle, axes=(1, 0), reshape=True, output=None, order=3, mode='constant', cval=0.0, "
            'prefilter=True'
        ): 'rotate',
        "input, axis=-1, output=None, mode='reflect', cval=0.0": 'prewitt sobel',
        (
            "input, coordinates, output=None, order=3, mode='constant', cval=0.0, prefilter=True"
        ): 'map_coordinates',
        (
            "input, derivative, output=None, mode='reflect', cval=0.0, extra_arguments=(), extra_keywords=None, *, "
            'axes=None'
        ): 'generic_gradient_magnitude',
        (
            "input, derivative2, output=None, mode='reflect', cval=0.0, extra_arguments=(), extra_keywords=None, *, "
            'axes=None'
        ): 'generic_laplace',
        (
            "input, function, filter_size, axis=-1, output=None, mode='reflect', cval=0.0, origin=0"
        ): 'generic_filter1d',
        (
            "input, function, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, *, "
            'axes=None'
        ): 'generic_filter',
        (
            'input, labels, index, func, out_dtype, default, pass_positions=False'
        ): 'labeled_comprehension',
        'input, labels=None, index=None': (
            'center_of_mass extrema maximum maximum_position mean median minimum minimum_position '
            'standard_deviation sum sum_labels variance'
        ),
        (
            "input, matrix, offset=0.0, output_shape=None, output=None, order=3, mode='constant', cval=0.0, "
            'prefilter=True, *, texture_memory=False, float64_coords=False'
        ): 'affine_transform',
        'input, max_label=0': 'find_objects',
        'input, min, max, bins, labels=None, index=None': 'histogram',
        "input, order=3, axis=-1, output=None, mode='mirror'": 'spline_filter1d',
        "input, order=3, output=None, mode='mirror'": 'spline_filter',
        "input, output=None, mode='reflect', cval=0.0, *, axes=None": 'laplace',
        (
            "input, percentile, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, "
            'axes=None'
        ): 'percentile_filter',
        (
            "input, rank, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, axes=None"
        ): 'rank_filter',
        'input, shift, n=-1, axis=-1, output=None': 'fourier_shift',
        (
            "input, shift, output=None, order=3, mode='constant', cval=0.0, prefilter=True"
        ): 'shift',
        (
            "input, sigma, axis=-1, order=0, output=None, mode='reflect', cval=0.0, truncate=4.0"
        ): 'gaussian_filter1d',
        'input, sigma, n=-1, axis=-1, output=None': 'fourier_gaussian',
        (
            "input, sigma, order=0, output=None, mode='reflect', cval=0.0, truncate=4.0, radius=None, axes=None"
        ): 'gaussian_filter',
        (
            "input, sigma, output=None, mode='reflect', cval=0.0, *, axes=None, **kwargs"
        ): 'gaussian_gradient_magnitude gaussian_laplace',
        (
            "input, size, axis=-1, output=None, mode='reflect', cval=0.0, origin=0"
        ): 'maximum_filter1d minimum_filter1d uniform_filter1d',
        'input, size, n=-1, axis=-1, output=None': 'fourier_ellipsoid fourier_uniform',
        (
            "input, size=3, output=None, mode='reflect', cval=0.0, origin=0, axes=None"
        ): 'uniform_filter',
        (
            "input, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, axes=None"
        ): 'maximum_filter median_filter minimum_filter',
        (
            "input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, "
            'axes=None'
        ): (
            'black_tophat grey_closing grey_dilation grey_erosion grey_opening morphological_gradient '
            'morphological_laplace white_tophat'
        ),
        (
            'input, structure1=None, structure2=None, output=None, origin1=0, origin2=None, *, axes=None'
        ): 'binary_hit_or_miss',
        (
            'input, structure=None, iterations=1, mask=None, output=None, border_value=0, origin=0, '
            'brute_force=False, *, axes=None'
        ): 'binary_dilation binary_erosion',
        (
            'input, structure=None, iterations=1, output=None, origin=0, mask=None, border_value=0, '
            'brute_force=False, *, axes=None'
        ): 'binary_closing binary_opening',
        (
            'input, structure=None, mask=None, output=None, border_value=0, origin=0, *, axes=None'
        ): 'binary_propagation',
        'input, structure=None, output=None': 'label',
        'input, structure=None, output=None, origin=0, *, axes=None': 'binary_fill_holes',
        (
            "input, weights, axis=-1, output=None, mode='reflect', cval=0.0, origin=0"
        ): 'convolve1d correlate1d',
        (
            "input, weights, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None"
        ): 'convolve correlate',
        (
            "input, zoom, output=None, order=3, mode='constant', cval=0.0, prefilter=True, *, grid_mode=False"
        ): 'zoom',
        'rank, connectivity': 'generate_binary_structure',
        'structure, iterations, origin=None': 'iterate_structure',
    },
    'cupyx.scipy.signal': {
        'A, B, C, D, input=0': 'ss2tf ss2zpk',
        "A, B, poles, method='YT', rtol=0.001, maxiter=30": 'place_poles',
        'A=None, B=None, C=None, D=None': 'abcd_normalize',
        'Iin, lmbda=5.0': 'spline_filter',
        'M, s, w=5': 'morlet2',
        'M, w=5.0, s=1.0, complete=True': 'morlet',
        'N': 'buttap',
        "N, Wn, btype='low', analog=False, output='ba', fs=None": 'butter',
        (
            "N, Wn, rp=None, rs=None, btype='band', analog=False, ftype='butter', output='ba', fs=None"
        ): 'iirfilter',
        'N, rp': 'cheb1ap',
        "N, rp, Wn, btype='low', analog=False, output='ba', fs=None": 'cheby1',
        'N, rp, rs': 'ellipap',
        "N, rp, rs, Wn, btype='low', analog=False, output='ba', fs=None": 'ellip',
        'N, rs': 'cheb2ap',
        "N, rs, Wn, btype='low', analog=False, output='ba', fs=None": 'cheby2',
        (
            "Zxx, fs=1.0, window='hann', nperseg=None, noverlap=None, nfft=None, input_onesided=True, "
            "boundary=True, time_axis=-1, freq_axis=-2, scaling='spectrum'"
        ): 'istft',
        'a': 'kaiser_beta',
        'a, domain, rank': 'order_filter',
        'b, a': 'lfilter_zi normalize tf2zpk',
        'b, a, fs=1.0': 'bilinear',
        'b, a, pairing=None, *, analog=False': 'tf2sos',
        "b, a, tol=0.001, rtype='avg'": 'residue residuez',
        'b, a, wo=1.0': 'lp2hp lp2lp',
        'b, a, wo=1.0, bw=1.0': 'lp2bp lp2bs',
        'b, a, worN=200, plot=None': 'freqs',
        (
            "b, a, x, axis=-1, padtype='odd', padlen=None, method='pad', irlen=None"
        ): 'filtfilt',
        'b, a, x, axis=-1, zi=None': 'lfilter',
        'b, a, y, x=None': 'lfiltic',
        (
            'b, a=1, worN=512, whole=False, plot=None, fs=6.283185307179586, include_nyquist=False'
        ): 'freqz',
        'cj, newx, dx=1.0, x0=0': 'cspline1d_eval qspline1d_eval',
        "data, axis=-1, type='linear', bp=0, overwrite_data=False": 'detrend',
        "data, axis=0, order=1, mode='clip'": 'argrelmax argrelmin',
        "data, comparator, axis=0, order=1, mode='clip'": 'argrelextrema',
        'data, wavelet, widths': 'cwt',
        'events, period': 'vectorstrength',
        'freq, ftype, order=None, numtaps=None, fs=None': 'gammatone',
        "h, method='homomorphic', n_fft=None, half=True": 'minimum_phase',
        "h, x, up=1, down=1, axis=-1, mode='constant', cval=0": 'upfirdn',
        'hk': 'qmf',
        'im, mysize=None, noise=None': 'wiener',
        "in1, in2, mode='full'": 'choose_conv_method',
        "in1, in2, mode='full', axes=None": 'fftconvolve oaconvolve',
        "in1, in2, mode='full', boundary='fill', fillvalue=0": 'convolve2d correlate2d',
        "in1, in2, mode='full', method='auto'": 'convolve correlate',
        "in1_len, in2_len, mode='full'": 'correlation_lags',
        'input, c0, z1, precision=-1.0': 'symiirorder1',
        'input, hrow, hcol': 'sepfir2d',
        'input, kernel_size=3': 'medfilt2d',
        'input, r, omega, precision=-1.0': 'symiirorder2',
        'm, w=None, a=None': 'czt_points',
        'nbits, state=None, length=None, taps=None': 'max_len_seq',
        'num, den': 'tf2ss',
        "num, den, N, kind='ba'": 'findfreqs',
        'numtaps, bands, desired, weight=None, fs=2': 'firls',
        (
            "numtaps, cutoff, width=None, window='hamming', pass_zero=True, scale=True, fs=2"
        ): 'firwin',
        (
            "numtaps, freq, gain, nfreqs=None, window='hamming', nyq=None, antisymmetric=False, fs=2.0"
        ): 'firwin2',
        'numtaps, width': 'kaiser_atten',
        "p, tol=0.001, rtype='min'": 'unique_roots',
        'points, a': 'ricker',
        "r, p, k, tol=0.001, rtype='avg'": 'invres invresz',
        'ripple, width': 'kaiserord',
        'shape, idx=None, dtype=None': 'unit_impulse',
        'signal, divisor': 'deconvolve',
        'signal, lamb=0.0': 'cspline1d qspline1d',
        'signal, lamb=0.0, precision=-1.0': 'cspline2d qspline2d',
        'sos': 'sos2tf sos2zpk sosfilt_zi',
        'sos, worN=512, whole=False, fs=6.283185307179586': 'freqz_sos sosfreqz',
        "sos, x, axis=-1, padtype='odd', padlen=None": 'sosfiltfilt',
        'sos, x, axis=-1, zi=None': 'sosfilt',
        'system, U, T, X0=None, interp=True': 'lsim',
        'system, X0=None, T=None, N=None': 'impulse step',
        "system, dt, method='zoh', alpha=None": 'cont2discrete',
        'system, u, t=None, x0=None': 'dlsim',
        'system, w=512, whole=False, fs=6.283185307179586': 'group_delay',
        'system, w=None, n=100': 'bode dbode',
        'system, w=None, n=10000': 'freqresp',
        'system, w=None, n=10000, whole=False': 'dfreqresp',
        'system, x0=None, t=None, n=None': 'dimpulse dstep',
        't, duty=0.5': 'square',
        "t, f0, t1, f1, method='linear', phi=0, vertex_zero=True": 'chirp',
        (
            't, fc=1000, bw=0.5, bwr=-6, tpr=-60, retquad=False, retenv=False'
        ): 'gausspulse',
        't, poly, phi=0': 'sweep_poly',
        't, width=1.0': 'sawtooth',
        'volume, kernel_size=None': 'medfilt',
        'w0, Q, fs=2.0': 'iirnotch iirpeak',
        "w0, Q, ftype='notch', fs=2.0, *, pass_zero=False": 'iircomb',
        'window, Nx, fftbins=True': 'get_window',
        'window, nperseg, noverlap, tol=1e-10': 'check_COLA check_NOLA',
        (
            "window_length, polyorder, deriv=0, delta=1.0, pos=None, use='conv'"
        ): 'savgol_coeffs',
        'wp, ind, passb, stopb, gpass, gstop, type': 'band_stop_obj',
        'wp, ws, gpass, gstop, analog=False, fs=None': 'buttord cheb1ord cheb2ord ellipord',
        (
            "wp, ws, gpass, gstop, analog=False, ftype='ellip', output='ba', fs=None"
        ): 'iirdesign',
        'x, N=None': 'hilbert2',
        'x, N=None, axis=-1': 'hilbert',
        'x, fn, m=None, *, fs=2, endpoint=False, axis=-1': 'zoom_fft',
        (
            "x, fs=1.0, window='boxcar', nfft=None, detrend='constant', return_onesided=True, scaling='density', "
            'axis=-1'
        ): 'periodogram',
        (
            "x, fs=1.0, window='hann', nperseg=256, noverlap=None, nfft=None, detrend=False, return_onesided=True, "
            "boundary='zeros', padded=True, axis=-1, scaling='spectrum'"
        ): 'stft',
        (
            "x, fs=1.0, window='hann', nperseg=None, noverlap=None, nfft=None, detrend='constant', "
            "return_onesided=True, scaling='density', axis=-1, average='mean'"
        ): 'welch',
        (
            "x, fs=1.0, window=('tukey', 0.25), nperseg=None, noverlap=None, nfft=None, detrend='constant', "
            "return_onesided=True, scaling='density', axis=-1, mode='psd'"
        ): 'spectrogram',
        (
            'x, height=None, threshold=None, distance=None, prominence=None, width=None, wlen=None, rel_height=0.5, '
            'plateau_size=None'
        ): 'find_peaks',
        'x, m=None, w=None, a=None, axis=-1': 'czt',
        'x, n': 'gauss_spline',
        "x, num, t=None, axis=0, window=None, domain='time'": 'resample',
        'x, peaks, rel_height=0.5, prominence_data=None, wlen=None': 'peak_widths',
        'x, peaks, wlen=None': 'peak_prominences',
        "x, q, n=None, ftype='iir', axis=-1, zero_phase=True": 'decimate',
        (
            "x, up, down, axis=0, window=('kaiser', 5.0), padtype='constant', cval=None"
        ): 'resample_poly',
        (
            "x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode='interp', cval=0.0"
        ): 'savgol_filter',
        'x, y, freqs, precenter=False, normalize=False': 'lombscargle',
        (
            "x, y, fs=1.0, window='hann', nperseg=None, noverlap=None, nfft=None, detrend='constant', axis=-1"
        ): 'coherence',
        (
            "x, y, fs=1.0, window='hann', nperseg=None, noverlap=None, nfft=None, detrend='constant', "
            "return_onesided=True, scaling='density', axis=-1, average='mean'"
        ): 'csd',
        'z, p, k': 'zpk2ss zpk2tf',
        'z, p, k, fs': 'bilinear_zpk',
        'z, p, k, pairing=None, *, analog=False': 'zpk2sos',
        'z, p, k, wo=1.0': 'lp2hp_zpk lp2lp_zpk',
        'z, p, k, wo=1.0, bw=1.0': 'lp2bp_zpk lp2bs_zpk',
        'z, p, k, worN=200': 'freqs_zpk',
        'z, p, k, worN=512, whole=False, fs=6.283185307179586': 'freqz_zpk',
    },
    'cupyx.scipy.signal.windows': {
        'M, a, sym=True': 'general_cosine',
        'M, alpha, sym=True': 'general_hamming',
        'M, alpha=0.5, sym=True': 'tukey',
        'M, at, sym=True': 'chebwin',
        'M, beta, sym=True': 'kaiser kaiser_bessel_derived',
        'M, center=None, tau=1.0, sym=True': 'exponential',
        'M, nbar=4, sll=30, norm=True, sym=True': 'taylor',
        'M, p, sig, sym=True': 'general_gaussian',
        'M, std, sym=True': 'gaussian',
        'M, sym=True': (
            'barthann bartlett blackman blackmanharris bohman boxcar cosine flattop hamming hann lanczos nuttall '
            'parzen triang'
        ),
        'window, Nx, fftbins=True': 'get_window',
    },
    'cupyx.scipy.sparse': {
        'A': 'find matrix_transpose',
        'A, B, format=None': 'kron kronsum',
        'A, axes=None, copy=False': 'permute_dims',
        'A, axis1, axis2': 'swapaxes',
        "A, idx_dtype=None, msg=''": 'safely_cast_index_arrays',
        'A, k=0, format=None': 'tril triu',
        'arrays=(), maxval=None, check_contents=False': 'get_index_dtype',
        'blocks, *, format=None, dtype=None': 'block_array',
        'blocks, format=None, dtype=None': 'bmat hstack vstack',
        'data, diags, m, n, format=None': 'spdiags',
        (
            'diagonals, /, *, offsets=0, shape=None, format=None, dtype=None'
        ): 'diags_array',
        'diagonals, offsets=0, shape=None, format=None, dtype=None': 'diags',
        (
            "m, n, density=0.01, format='coo', dtype=None, random_state=None"
        ): 'rand',
        (
            "m, n, density=0.01, format='coo', dtype=None, random_state=None, data_rvs=None"
        ): 'random',
        "m, n=None, k=0, dtype='d', format=None": 'eye',
        'm, n=None, k=0, dtype=None, format=None': 'eye_array',
        'mats, format=None, dtype=None': 'block_diag',
        "n, dtype='d', format=None": 'identity',
        (
            "shape, *, density=0.01, format='coo', dtype=None, rng=None, data_sampler=None"
        ): 'random_array',
        'x': (
            'issparse isspmatrix isspmatrix_coo isspmatrix_csc isspmatrix_csr isspmatrix_dia'
        ),
    },
    'cupyx.scipy.sparse.csgraph': {
        "csgraph, directed=True, connection='weak', return_labels=True": 'connected_components',
    },
    'cupyx.scipy.sparse.linalg': {
        'A': 'aslinearoperator factorized',
        (
            'A, X, B=None, M=None, Y=None, tol=None, maxiter=None, largest=True, verbosityLevel=0, '
            'retLambdaHistory=False, retResidualNormsHistory=False'
        ): 'lobpcg',
        'A, b': 'lsqr spsolve',
        (
            'A, b, lower=True, overwrite_A=False, overwrite_b=False, unit_diagonal=False'
        ): 'spsolve_triangular',
        (
            'A, b, x0=None, *, rtol=1e-05, atol=0.0, maxiter=None, M=None, callback=None'
        ): 'bicgstab cg cgs',
        (
            'A, b, x0=None, *, rtol=1e-05, atol=0.0, restart=None, maxiter=None, M=None, callback=None, '
            'callback_type=None'
        ): 'gmres',
        (
            'A, b, x0=None, damp=0.0, atol=1e-06, btol=1e-06, conlim=100000000.0, maxiter=None'
        ): 'lsmr',
        (
            'A, b, x0=None, shift=0.0, tol=1e-05, maxiter=None, M=None, callback=None, check=False'
        ): 'minres',
        (
            'A, drop_tol=None, fill_factor=None, drop_rule=None, permc_spec=None, diag_pivot_thresh=None, '
            'relax=None, panel_size=None, options=None'
        ): 'spilu',
        (
            'A, permc_spec=None, diag_pivot_thresh=None, relax=None, panel_size=None, options=None'
        ): 'splu',
        'A, power': 'matrix_power',
        (
            "a, k=6, *, ncv=None, tol=0, which='LM', maxiter=None, return_singular_vectors=True"
        ): 'svds',
        (
            "a, k=6, *, which='LM', v0=None, ncv=None, maxiter=None, tol=0, return_eigenvectors=True"
        ): 'eigsh',
        'x, ord=None, axis=None': 'norm',
    },
    'cupyx.scipy.spatial': {
        'x, y, p=2.0': 'distance_matrix',
    },
    'cupyx.scipy.spatial.distance': {
        '': 'check_soft_dependencies',
        "X, metric='euclidean', *, out=None, **kwargs": 'pdist',
        "XA, XB, metric='euclidean', out=None, **kwargs": 'cdist',
        'u, v': (
            'canberra chebyshev cityblock correlation cosine euclidean hamming hellinger jensenshannon '
            'kl_divergence russellrao sqeuclidean'
        ),
        'u, v, p': 'minkowski',
        'x, y, p=2.0': 'distance_matrix',
    },
    'cupyx.scipy.special': {
        'a, axis=None, b=None, keepdims=False, return_sign=False': 'logsumexp',
        'a, b, p, out=None': 'btdtri',
        'a, b, x, out=None': 'btdtr',
        'a, d': 'multigammaln',
        'a, decimals=0, out=None': 'round',
        'm, n, theta, phi, out=None': 'sph_harm',
        'n, m, theta, phi, *, diff_n=0': 'sph_harm_y',
        'n, x': 'polygamma',
        'n, z, derivative=False': 'spherical_yn',
        'x, axis=None': 'log_softmax softmax',
        'z, k=0, tol=1e-08': 'lambertw',
    },
    'cupyx.scipy.stats': {
        "a, axis=0, ddof=0, nan_policy='propagate'": 'zscore',
        'a, proportiontocut, axis=0': 'trim_mean',
        'lmb, data': 'boxcox_llf',
        'pk, qk=None, base=None, axis=0': 'entropy',
        "scores, compare, axis=0, ddof=0, nan_policy='propagate'": 'zmap',
    },
}
UFUNCS = {
    'cupyx.scipy.special': {
        (1, 1, ''): (
            'cbrt cosdg cosm1 cotdg digamma ellipk ellipkm1 entr erf erfc erfcinv erfcx erfinv exp1 exp10 exp2 expi '
            'expit expm1 exprel gamma gammaln gammasgn i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e log1p log_expit log_ndtr '
            'loggamma logit ndtr ndtri psi rgamma sinc sindg tandg y0 y1 zetac'
        ),
        (1, 2, ''): 'shichi sici',
        (2, 1, ''): (
            'beta betaln binom boxcox boxcox1p chdtr chdtrc chdtri ellipeinc ellipkinc expn gammainc gammaincc '
            'gammainccinv gammaincinv huber inv_boxcox inv_boxcox1p kl_div pdtr pdtrc pdtri poch pseudo_huber '
            'rel_entr xlog1py xlogy yn zeta'
        ),
        (2, 4, ''): 'ellipj',
        (3, 1, ''): (
            'bdtr bdtrc bdtri betainc betaincinv fdtr fdtrc fdtri gdtr gdtrc lpmv nbdtr nbdtrc nbdtri radian '
            'wright_bessel'
        ),
    },
}
CLASSES = {
    'cucim.skimage.filters': 'LPIFilter2D',
    'cucim.skimage.transform': (
        'AffineTransform EssentialMatrixTransform EuclideanTransform FundamentalMatrixTransform '
        'PiecewiseAffineTransform PolynomialTransform ProjectiveTransform SimilarityTransform'
    ),
    'cupyx.scipy.interpolate': (
        'Akima1DInterpolator BPoly BSpline BarycentricInterpolator CloughTocher2DInterpolator CubicHermiteSpline '
        'CubicSpline InterpolatedUnivariateSpline KroghInterpolator LSQUnivariateSpline LinearNDInterpolator '
        'NdBSpline NdPPoly NearestNDInterpolator PPoly PchipInterpolator RBFInterpolator RegularGridInterpolator '
        'UnivariateSpline interp1d pchip'
    ),
    'cupyx.scipy.signal': 'CZT StateSpace TransferFunction ZerosPolesGain ZoomFFT dlti lti',
    'cupyx.scipy.sparse': (
        'coo_array coo_matrix csc_array csc_matrix csr_array csr_matrix dia_array dia_matrix sparray spmatrix'
    ),
    'cupyx.scipy.sparse.linalg': 'LinearOperator SuperLU',
    'cupyx.scipy.spatial': 'Delaunay KDTree',
    'cupyx.scipy.spatial.distance': 'MetricInfo',
}
