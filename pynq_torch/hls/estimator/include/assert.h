// assert for the estimator: the tools take bounds of loops from it (UG902, UG1399), and make no hardware of it.
#undef assert
#ifdef NDEBUG
#define assert(AP_SAID) ((void)0)
#else
#define assert(AP_SAID) __builtin_assume(!!(AP_SAID))
#endif
#if !defined(__cplusplus) && !defined(static_assert)
#define static_assert _Static_assert
#endif
