import AcceptanceRows

/// The rows of the acceptance tables that the feeds' tests show.
///
/// The tests of the store show most rows of the tables STO and TIM: see `Tests/LarderTests`.
enum Rows {
  /// All tables.
  ///
  /// Rows that do not apply have no test. `GEN-62` and `IMG-49` say when an application calls
  /// `validate`; a library cannot. The others say that a save or a validation stops when its loader
  /// is released. Both are plain calls here that return when they are done: no completion could be
  /// withheld.
  ///
  /// Other rows, listed in `Tests/ROWS.md`, say that a load delivers nothing after its loader was
  /// released. A `Loader` is a value: nothing is released, and a load keeps alive what it needs.
  /// Cancelling its task ends a load, so each of these rows names the test that nothing is
  /// delivered after a cancellation.
  static let tables = [
    AcceptanceTable("GEN", 1...86, notApplicable: [61, 62, 71], genres),
    AcceptanceTable("EFA", 1...52, notApplicable: [51], essentialFeed),
    AcceptanceTable("ITN", 1...36, mediaSearch),
    AcceptanceTable("RAM", 1...55, notApplicable: [54], characters),
    AcceptanceTable("IMG", 1...97, notApplicable: [48, 49, 58, 92], images),
    AcceptanceTable("IDS", 1...8, imageCache),
    AcceptanceTable("HTTP", 1...8, client),
    AcceptanceTable("STO", [22], store),
    AcceptanceTable("TIM", [7, 10, 11, 12, 13, 14, 15, 16], expiry),
  ]

  /// Podcast genres.
  private static let genres = """
    GEN-01 FeedServerTests/genres
    GEN-01 GenresScenarioTests/missIsLoaded
    GEN-02 GenresScenarioTests/hitNeedsNoRequest
    GEN-03 GenresScenarioTests/missIsLoaded
    GEN-04 GenresScenarioTests/hitNeedsNoRequest
    GEN-05 GenresScenarioTests/offlineMiss
    GEN-06 GenresScenarioTests/offlineMiss
    GEN-07 GenresScenarioTests/unreadableOnline
    GEN-07 BlockDamageTests/load
    GEN-08 GenresScenarioTests/unreadableOffline
    GEN-08 BlockDamageTests/load
    GEN-09 GenresScenarioTests/missIsLoaded
    GEN-10 GenresScenarioTests/failedSave
    GEN-11 GenresScenarioTests/offlineMiss
    GEN-11 GenresScenarioTests/invalidData
    GEN-12 FeedServerTests/failures
    GEN-12 GenresScenarioTests/invalidData
    GEN-13 GenresScenarioTests/hitNeedsNoRequest
    GEN-14 GenresScenarioTests/emptyList
    GEN-15 RemoteTests/newLoaderHasSentNothing
    GEN-16 RemoteTests/loadRequestsItsURL
    GEN-17 RemoteTests/twoLoadsAreTwoRequests
    GEN-18 FeedServerTests/failures
    GEN-18 RemoteTests/clientFailureIsConnectivity
    GEN-19 FeedServerTests/failures
    GEN-19 RemoteTests/statusIsInvalidData
    GEN-20 FeedServerTests/failures
    GEN-20 RemoteTests/bodyThatIsNoJSONIsInvalidData
    GEN-21 RemoteTests/listIsRequired
    GEN-22 RemoteTests/oneBadItemSpoilsTheList
    GEN-23 FeedServerTests/failures
    GEN-23 RemoteTests/bodyThatIsNoJSONIsInvalidData
    GEN-24 RemoteTests/emptyListIsAList
    GEN-25 FeedServerTests/genres
    GEN-25 RemoteTests/itemsKeepOrderAndDuplicates
    GEN-26 RemoteTests/itemsKeepOrderAndDuplicates
    GEN-27 RemoteTests/completionRunsOnce
    GEN-28 CancellationTests/cancelledCompletion
    GEN-29 FeedServerTests/recovery
    GEN-29 RetryTests/secondAttempt
    GEN-30 RetryTests/thirdAttempt
    GEN-31 RetryTests/noFourthAttempt
    GEN-32 RetryTests/connectivityIsNotRetried
    GEN-33 RetryTests/connectivityEndsRetries
    GEN-34 RetryTests/everyKindIsRetried
    GEN-35 RetryTests/attemptsPerLoad
    GEN-36 RetryTests/attemptsInTurn
    GEN-36 RetryTests/urlIsAskedOncePerLoad
    GEN-37 RetryTests/thirdAttempt
    GEN-38 RetryTests/cancelledBetweenAttempts
    GEN-39 RetryTests/savedOnce
    GEN-40 RetryTests/retrievalIsNotRetried
    GEN-41 LocalTests/newLoaderIsSilent
    GEN-42 LocalTests/oneLookup
    GEN-43 LocalTests/retrievalError
    GEN-43 BlockDamageTests/load
    GEN-44 LocalTests/emptyCache
    GEN-45 LocalTests/freshness
    GEN-46 LocalTests/freshness
    GEN-47 LocalTests/freshness
    GEN-48 LocalTests/emptyListIsAHit
    GEN-49 LocalTests/freshness
    GEN-50 LocalTests/lookChangesNothing
    GEN-51 LocalTests/clockIsReadOnce
    GEN-52 CancellationTests/cancelledCompletionWhileReading
    GEN-53 LocalTests/newLoaderIsSilent
    GEN-54 ValidationTests/unreadableIsDeleted
    GEN-54 BlockDamageTests/validate
    GEN-55 ValidationTests/expiredIsDeleted
    GEN-56 ValidationTests/expiredIsDeleted
    GEN-57 ValidationTests/freshIsKept
    GEN-58 ValidationTests/emptyIsValid
    GEN-59 ValidationTests/unreadableIsDeleted
    GEN-59 ValidationTests/expiredIsDeleted
    GEN-59 BlockDamageTests/validate
    GEN-60 ValidationTests/deletionFails
    GEN-63 LocalTests/newLoaderIsSilent
    GEN-64 SavingTests/oneAtomicReplace
    GEN-65 SavingTests/failedSave
    GEN-66 SavingTests/failedSave
    GEN-67 SavingTests/replaced
    GEN-68 SavingTests/replaced
    GEN-69 SavingTests/emptyList
    GEN-70 SavingTests/anotherInstance
    GEN-72 DomainTests/genresURL
    GEN-73 DomainTests/genresURL
    GEN-74 PaletteTests/everyGenre
    GEN-75 PaletteTests/twoPalettes
    GEN-76 PaletteTests/inTurn
    GEN-77 PaletteTests/inTurn
    GEN-78 PaletteTests/keptVerbatim
    GEN-79 PaletteTests/keptVerbatim
    GEN-80 PaletteTests/refused
    GEN-81 PaletteTests/empty
    GEN-82 PaletteTests/empty
    GEN-83 PaletteTests/negative
    GEN-84 PaletteTests/refused
    GEN-85 PaletteTests/closure
    GEN-86 PaletteTests/notSaved
    """

  /// The essential feed.
  private static let essentialFeed = """
    EFA-01 RemoteFirstScenarioTests/remoteFirst
    EFA-02 FeedServerTests/essentialFeed
    EFA-02 RemoteFirstScenarioTests/remoteFirst
    EFA-03 RemoteFirstScenarioTests/remoteFirst
    EFA-04 RemoteFirstScenarioTests/fallback
    EFA-04 RemoteFirstScenarioTests/anyAge
    EFA-05 RemoteFirstScenarioTests/nothingUsable
    EFA-06 RemoteFirstScenarioTests/nothingUsable
    EFA-07 RemoteFirstScenarioTests/fallback
    EFA-07 RemoteFirstScenarioTests/anyAge
    EFA-08 RemoteFirstScenarioTests/nothingUsable
    EFA-09 RemoteFirstScenarioTests/bothFail
    EFA-09 BlockDamageTests/load
    EFA-10 RemoteFirstScenarioTests/failedSave
    EFA-11 RemoteFirstScenarioTests/fallback
    EFA-11 RemoteFirstScenarioTests/nothingUsable
    EFA-12 RemoteFirstScenarioTests/remoteFirst
    EFA-13 RemoteTests/newLoaderHasSentNothing
    EFA-14 RemoteTests/loadRequestsItsURL
    EFA-15 RemoteTests/twoLoadsAreTwoRequests
    EFA-16 RemoteTests/clientFailureIsConnectivity
    EFA-17 RemoteTests/statusIsInvalidData
    EFA-18 RemoteTests/bodyThatIsNoJSONIsInvalidData
    EFA-19 RemoteTests/listIsRequired
    EFA-20 RemoteTests/oneBadItemSpoilsTheList
    EFA-21 RemoteTests/bodyThatIsNoJSONIsInvalidData
    EFA-22 RemoteTests/emptyListIsAList
    EFA-23 FeedServerTests/essentialFeed
    EFA-23 RemoteTests/itemsKeepOrderAndDuplicates
    EFA-24 RemoteTests/itemsKeepOrderAndDuplicates
    EFA-25 FeedItemTests/feedItems
    EFA-25 FeedItemTests/wrongType
    EFA-25 FeedServerTests/essentialFeed
    EFA-26 FeedItemTests/badFields
    EFA-27 RemoteTests/completionRunsOnce
    EFA-28 CancellationTests/cancelledCompletion
    EFA-29 LocalTests/maximumAgeOfTheCall
    EFA-29 LocalTests/anyAge
    EFA-30 LocalTests/newLoaderIsSilent
    EFA-31 LocalTests/oneLookup
    EFA-32 LocalTests/retrievalError
    EFA-32 BlockDamageTests/load
    EFA-33 LocalTests/emptyCache
    EFA-34 LocalTests/freshness
    EFA-35 LocalTests/freshness
    EFA-36 LocalTests/freshness
    EFA-37 LocalTests/emptyListIsAHit
    EFA-38 LocalTests/freshness
    EFA-39 LocalTests/lookChangesNothing
    EFA-40 LocalTests/clockIsReadOnce
    EFA-41 CancellationTests/cancelledCompletionWhileReading
    EFA-42 SavingTests/oneAtomicReplace
    EFA-43 LocalTests/newLoaderIsSilent
    EFA-44 SavingTests/oneAtomicReplace
    EFA-45 SavingTests/failedSave
    EFA-46 SavingTests/failedSave
    EFA-47 SavingTests/replaced
    EFA-48 SavingTests/replaced
    EFA-49 SavingTests/emptyList
    EFA-50 SavingTests/anotherInstance
    EFA-52 ValidationTests/keptForEver
    """

  /// The media search.
  private static let mediaSearch = """
    ITN-01 FeedServerTests/search
    ITN-01 MediaSearchTests/found
    ITN-02 MediaSearchTests/offline
    ITN-03 MediaSearchTests/invalid
    ITN-04 MediaSearchTests/neverCached
    ITN-05 MediaSearchTests/found
    ITN-06 RemoteTests/newLoaderHasSentNothing
    ITN-07 RemoteTests/loadRequestsItsURL
    ITN-08 RemoteTests/twoLoadsAreTwoRequests
    ITN-09 RemoteTests/clientFailureIsConnectivity
    ITN-10 RemoteTests/statusIsInvalidData
    ITN-11 RemoteTests/bodyThatIsNoJSONIsInvalidData
    ITN-12 RemoteTests/listIsRequired
    ITN-13 MediaSearchTests/incompleteSong
    ITN-13 RemoteTests/oneBadItemSpoilsTheList
    ITN-14 RemoteTests/bodyThatIsNoJSONIsInvalidData
    ITN-15 RemoteTests/emptyListIsAList
    ITN-16 FeedServerTests/search
    ITN-16 RemoteTests/itemsKeepOrderAndDuplicates
    ITN-17 RemoteTests/itemsKeepOrderAndDuplicates
    ITN-18 MediaSearchTests/sixFields
    ITN-19 MediaSearchTests/optionalFields
    ITN-20 MediaSearchTests/optionalFields
    ITN-21 MediaSearchTests/previewKey
    ITN-22 MediaSearchTests/resultCount
    ITN-23 MediaSearchTests/completeItem
    ITN-23 MediaSearchTests/incompleteItem
    ITN-24 RemoteTests/completionRunsOnce
    ITN-25 CancellationTests/cancelledCompletion
    ITN-26 MediaSearchURLTests/realURL
    ITN-26 MediaSearchURLTests/otherServer
    ITN-27 FeedServerTests/search
    ITN-27 MediaSearchURLTests/everyByte
    ITN-28 MediaSearchURLTests/terms
    ITN-29 MediaSearchURLTests/terms
    ITN-30 MediaSearchURLTests/terms
    ITN-31 MediaSearchURLTests/terms
    ITN-32 MediaSearchURLTests/terms
    ITN-33 MediaSearchURLTests/terms
    ITN-34 MediaSearchURLTests/terms
    ITN-35 FeedServerTests/search
    ITN-35 MediaSearchURLTests/decoded
    ITN-36 MediaSearchURLTests/parameters
    """

  /// Characters.
  private static let characters = """
    RAM-01 FeedServerTests/characters
    RAM-01 RemoteFirstScenarioTests/remoteFirst
    RAM-02 RemoteFirstScenarioTests/remoteFirst
    RAM-03 DomainTests/randomPages
    RAM-03 DomainTests/randomPagesByDefault
    RAM-03 DomainTests/anyURL
    RAM-04 RemoteFirstScenarioTests/fallback
    RAM-05 RemoteFirstScenarioTests/nothingUsable
    RAM-06 RemoteFirstScenarioTests/nothingUsable
    RAM-07 RemoteFirstScenarioTests/fallback
    RAM-08 RemoteFirstScenarioTests/nothingUsable
    RAM-09 RemoteFirstScenarioTests/bothFail
    RAM-09 BlockDamageTests/load
    RAM-10 RemoteFirstScenarioTests/failedSave
    RAM-11 RemoteFirstScenarioTests/fallback
    RAM-11 RemoteFirstScenarioTests/nothingUsable
    RAM-12 RemoteTests/newLoaderHasSentNothing
    RAM-13 RemoteTests/loadRequestsItsURL
    RAM-14 RemoteTests/twoLoadsAreTwoRequests
    RAM-15 RemoteTests/clientFailureIsConnectivity
    RAM-16 RemoteTests/statusIsInvalidData
    RAM-17 RemoteTests/bodyThatIsNoJSONIsInvalidData
    RAM-18 RemoteTests/listIsRequired
    RAM-19 RemoteTests/oneBadItemSpoilsTheList
    RAM-20 RemoteTests/bodyThatIsNoJSONIsInvalidData
    RAM-21 RemoteTests/emptyListIsAList
    RAM-22 FeedServerTests/characters
    RAM-22 RemoteTests/itemsKeepOrderAndDuplicates
    RAM-23 RemoteTests/itemsKeepOrderAndDuplicates
    RAM-24 DomainTests/characterFields
    RAM-25 DomainTests/characterFields
    RAM-25 DomainTests/badFields
    RAM-26 DomainTests/characterFields
    RAM-26 RemoteTests/itemsKeepOrderAndDuplicates
    RAM-27 DomainTests/characterFields
    RAM-28 DomainTests/badFields
    RAM-28 RemoteTests/oneBadItemSpoilsTheList
    RAM-29 RemoteTests/bodyThatIsNoJSONIsInvalidData
    RAM-30 RemoteTests/completionRunsOnce
    RAM-31 CancellationTests/cancelledCompletion
    RAM-32 LocalTests/maximumAgeOfTheCall
    RAM-32 LocalTests/callOnlyShortens
    RAM-33 LocalTests/newLoaderIsSilent
    RAM-34 LocalTests/oneLookup
    RAM-35 LocalTests/retrievalError
    RAM-35 BlockDamageTests/load
    RAM-36 LocalTests/emptyCache
    RAM-37 LocalTests/freshness
    RAM-38 LocalTests/freshness
    RAM-39 LocalTests/freshness
    RAM-40 LocalTests/emptyListIsAHit
    RAM-41 LocalTests/freshness
    RAM-42 LocalTests/lookChangesNothing
    RAM-43 LocalTests/clockIsReadOnce
    RAM-44 CancellationTests/cancelledCompletionWhileReading
    RAM-45 SavingTests/oneAtomicReplace
    RAM-46 LocalTests/newLoaderIsSilent
    RAM-47 SavingTests/oneAtomicReplace
    RAM-48 SavingTests/failedSave
    RAM-49 SavingTests/failedSave
    RAM-50 SavingTests/replaced
    RAM-51 SavingTests/replaced
    RAM-52 SavingTests/emptyList
    RAM-53 SavingTests/anotherInstance
    RAM-55 ValidationTests/keptForEver
    """

  /// The image feed, and image bytes.
  private static let images = """
    IMG-01 RemoteTests/loadRequestsItsURL
    IMG-02 RemoteTests/clientFailureIsConnectivity
    IMG-03 RemoteTests/clientFailureIsConnectivity
    IMG-03 RemoteTests/statusIsInvalidData
    IMG-04 FeedServerTests/images
    IMG-04 RemoteFirstScenarioTests/remoteFirst
    IMG-05 RemoteFirstScenarioTests/fallback
    IMG-06 RemoteFirstScenarioTests/nothingUsable
    IMG-07 RemoteFirstScenarioTests/nothingUsable
    IMG-08 RemoteFirstScenarioTests/fallback
    IMG-09 RemoteFirstScenarioTests/nothingUsable
    IMG-10 RemoteFirstScenarioTests/bothFail
    IMG-10 BlockDamageTests/load
    IMG-11 RemoteFirstScenarioTests/failedSave
    IMG-12 RemoteFirstScenarioTests/fallback
    IMG-12 RemoteFirstScenarioTests/nothingUsable
    IMG-13 RemoteTests/newLoaderHasSentNothing
    IMG-14 RemoteTests/loadRequestsItsURL
    IMG-15 RemoteTests/twoLoadsAreTwoRequests
    IMG-16 RemoteTests/clientFailureIsConnectivity
    IMG-17 RemoteTests/statusIsInvalidData
    IMG-18 RemoteTests/bodyThatIsNoJSONIsInvalidData
    IMG-19 RemoteTests/listIsRequired
    IMG-20 FeedItemTests/badFields
    IMG-20 RemoteTests/oneBadItemSpoilsTheList
    IMG-21 RemoteTests/bodyThatIsNoJSONIsInvalidData
    IMG-22 RemoteTests/emptyListIsAList
    IMG-23 FeedServerTests/images
    IMG-23 RemoteTests/itemsKeepOrderAndDuplicates
    IMG-24 RemoteTests/itemsKeepOrderAndDuplicates
    IMG-25 FeedItemTests/feedImages
    IMG-25 FeedItemTests/wrongType
    IMG-26 RemoteTests/completionRunsOnce
    IMG-27 CancellationTests/cancelledCompletion
    IMG-28 LocalTests/newLoaderIsSilent
    IMG-29 LocalTests/oneLookup
    IMG-30 LocalTests/retrievalError
    IMG-30 BlockDamageTests/load
    IMG-31 LocalTests/emptyCache
    IMG-32 LocalTests/freshness
    IMG-33 LocalTests/freshness
    IMG-34 LocalTests/freshness
    IMG-35 LocalTests/emptyListIsAHit
    IMG-36 LocalTests/freshness
    IMG-37 LocalTests/lookChangesNothing
    IMG-38 LocalTests/clockIsReadOnce
    IMG-39 CancellationTests/cancelledCompletionWhileReading
    IMG-40 LocalTests/newLoaderIsSilent
    IMG-41 ValidationTests/unreadableIsDeleted
    IMG-41 BlockDamageTests/validate
    IMG-42 ValidationTests/expiredIsDeleted
    IMG-43 ValidationTests/expiredIsDeleted
    IMG-44 ValidationTests/freshIsKept
    IMG-45 ValidationTests/emptyIsValid
    IMG-46 ValidationTests/unreadableIsDeleted
    IMG-46 ValidationTests/expiredIsDeleted
    IMG-46 BlockDamageTests/validate
    IMG-47 ValidationTests/deletionFails
    IMG-50 LocalTests/newLoaderIsSilent
    IMG-51 SavingTests/oneAtomicReplace
    IMG-52 SavingTests/failedSave
    IMG-53 SavingTests/failedSave
    IMG-54 SavingTests/replaced
    IMG-55 SavingTests/replaced
    IMG-56 SavingTests/emptyList
    IMG-57 SavingTests/anotherInstance
    IMG-59 ImageDataRemoteTests/newLoader
    IMG-60 ImageDataRemoteTests/oneRequest
    IMG-61 ImageDataRemoteTests/twoRequests
    IMG-62 FeedServerTests/imageFailures
    IMG-62 ImageDataRemoteTests/clientFailure
    IMG-63 FeedServerTests/imageFailures
    IMG-63 ImageDataRemoteTests/invalid
    IMG-64 FeedServerTests/imageFailures
    IMG-64 ImageDataRemoteTests/invalid
    IMG-65 FeedServerTests/imageFailures
    IMG-65 ImageDataRemoteTests/invalid
    IMG-66 FeedServerTests/images
    IMG-66 ImageDataRemoteTests/anyBytes
    IMG-67 ImageCancellationTests/nothingIsDelivered
    IMG-68 FeedServerTests/cancelledImage
    IMG-68 ImageCancellationTests/requestIsCancelled
    IMG-69 ImageCancellationTests/nothingIsDelivered
    IMG-70 ImageCancellationTests/nothingIsDelivered
    IMG-70 ImageCancellationTests/cancelledTask
    IMG-71 ImageCancellationTests/cancelledTask
    IMG-72 ImageCancellationTests/nothingIsDelivered
    IMG-72 ImageCancellationTests/cancelledAfterwards
    IMG-73 ImageCancellationTests/cancelledAfterwards
    IMG-74 FeedServerTests/cancelledImage
    IMG-74 ImageCancellationTests/nothingIsDelivered
    IMG-74 ImageCancellationTests/cancelledTask
    IMG-75 ImageCancellationTests/cancelledWhileReading
    IMG-76 ImageCancellationTests/requestIsCancelled
    IMG-77 ImageCancellationTests/cancelledWhileReading
    IMG-78 ImageCancellationTests/oneOfTwo
    IMG-79 ImageDataRemoteTests/clientFailure
    IMG-80 ImageDataRemoteTests/newLoader
    IMG-81 ImageDataLocalTests/oneLookup
    IMG-82 ImageDataLocalTests/retrievalError
    IMG-82 BlockDamageTests/load
    IMG-83 ImageDataLocalTests/notFound
    IMG-84 ImageDataLocalTests/saved
    IMG-85 ImageDataLocalTests/saved
    IMG-86 ImageCancellationTests/nothingIsDeliveredWhileReading
    IMG-87 ImageDataRemoteTests/newLoader
    IMG-88 ImageDataLocalTests/oneReplace
    IMG-89 ImageDataLocalTests/failedSave
    IMG-90 ImageDataLocalTests/oneReplace
    IMG-91 ImageDataCacheTests/lastSaved
    IMG-91 ImageDataCacheTests/anotherInstance
    IMG-93 ImageDataRemoteTests/newLoader
    IMG-94 FeedServerTests/images
    IMG-94 ImageDataLocalTests/saved
    IMG-95 ImageDataScenarioTests/missIsLoaded
    IMG-95 ImageDataScenarioTests/unreadable
    IMG-95 BlockDamageTests/load
    IMG-96 ImageDataScenarioTests/missIsLoaded
    IMG-96 ImageDataScenarioTests/failedSave
    IMG-97 ImageDataScenarioTests/failedLoad
    """

  /// The cache of image bytes.
  private static let imageCache = """
    IDS-01 ImageDataCacheTests/nothing
    IDS-02 ImageDataCacheTests/nothing
    IDS-03 ImageDataCacheTests/lastSaved
    IDS-04 ImageDataCacheTests/lastSaved
    IDS-05 ImageDataCacheTests/anotherInstance
    IDS-06 ImageDataCacheTests/independent
    IDS-07 ImageDataCacheTests/independent
    IDS-08 ImageDataCacheTests/exactKeys
    """

  /// The HTTP client.
  private static let client = """
    HTTP-01 URLSessionClientTests/oneRequest
    HTTP-02 URLSessionClientTests/refusedConnection
    HTTP-03 TransportStateTests/states
    HTTP-04 URLSessionClientTests/unchanged
    HTTP-04 TransportStateTests/states
    HTTP-05 URLSessionClientTests/noStatusIsJudged
    HTTP-05 TransportStateTests/states
    HTTP-06 URLSessionClientTests/noStatusIsJudged
    HTTP-06 URLSessionClientTests/challenge
    HTTP-07 URLSessionClientTests/cancelled
    HTTP-07 URLSessionClientTests/cancelledBefore
    HTTP-07 URLSessionClientTests/cancelledAnyTime
    HTTP-08 URLSessionClientTests/nothingIsKept
    """

  /// The store, as the program `feeds` uses it.
  private static let store = """
    STO-22 FeedsCommandTests/noStore
    """

  /// Expiry, through loaders.
  private static let expiry = """
    TIM-07 RepeatedHourTests/lifetime
    TIM-07 RepeatedHourTests/maximumAge
    TIM-10 LocalTests/freshness
    TIM-10 RepeatedHourTests/seconds
    TIM-11 LocalTests/freshness
    TIM-11 RepeatedHourTests/seconds
    TIM-12 LocalTests/freshness
    TIM-12 RepeatedHourTests/seconds
    TIM-13 LocalTests/freshness
    TIM-14 LocalTests/maximumAgeOfTheCall
    TIM-15 LocalTests/freshness
    TIM-15 RepeatedHourTests/seconds
    TIM-16 RepeatedHourTests/lifetime
    TIM-16 RepeatedHourTests/maximumAge
    """
}
