import Foundation
import Larder

// The untuned type that has direct coding, too, so that both routes can be measured.
// `swift package generate-direct-coding` makes Activity+DirectCoding.swift of this file.

extension Untuned {
  /// Enums with payloads within each other.
  indirect enum Activity: Codable, Equatable, Sendable {
    enum Mood: String, Codable, CaseIterable { case glad, sad, angry }
    enum Audience: Codable, Equatable, Sendable {
      case everyone
      case group(id: Int, name: String)
      case people([UUID])
    }

    case posted(title: String, text: String, for: Audience)
    case liked(by: UUID, at: Date)
    case replied(to: Activity, text: String, Mood?)
    case rated(Double)

    init(_ random: inout WorkloadRandom, depth: Int = 3) {
      switch random.next() % (depth == 0 ? 3 : 4) {
      case 0:
        let audience: Audience =
          switch random.next() % 3 {
          case 0: .everyone
          case 1: .group(id: random.number(1000), name: "Group \(random.number(1000))")
          default: .people((0..<3).map { _ in random.uuid() })
          }
        self = .posted(
          title: "Title \(random.number(10_000))", text: random.text(words: 12), for: audience)
      case 1: self = .liked(by: random.uuid(), at: random.date())
      case 2: self = .rated(Double(random.number(1000)) / 100)
      default:
        self = .replied(
          to: Activity(&random, depth: depth - 1), text: random.text(words: 8),
          random.next() % 2 == 0 ? nil : Mood.allCases[random.number(3)])
      }
    }
  }
}
