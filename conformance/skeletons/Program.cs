// An adapter: it lets the conformance kit of Pulsarium drive a client in C#.
//
// The kit writes one request a line to standard input, and reads one answer a line from standard output. Logs belong
// on standard error. Add a function for each operation that the client has. docs/conformance.md lists the operations.
// Put this file into a new project of .NET 8 or later: `dotnet new console`.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Text.Json.Nodes;
using System.Threading.Tasks;

// Clients, producers, consumers, ... by the kit's handles.
var things = new ConcurrentDictionary<string, object>();

var operations = new Dictionary<string, Func<JsonObject, Task<JsonObject>>> { ["open"] = Open, ["close"] = Close };

Task<JsonObject> Open(JsonObject request)
{
    things[Text(request, "as")] = Text(request, "url"); // TODO: connect a client to the URL, and keep the client
    // An operation that returns something has it here, such as new JsonObject { ["ids"] = new JsonArray("1:0") }.
    return Task.FromResult(new JsonObject());
}

Task<JsonObject> Close(JsonObject request)
{
    // TODO: close the client, producer or consumer. The kit also asks for handles of nothing.
    if (!things.TryRemove(Text(request, "handle"), out _))
        throw new Refusal("AlreadyClosed", $"nothing is open as {Text(request, "handle")}");
    return Task.FromResult(new JsonObject());
}

string Text(JsonObject request, string name) => request[name]?.GetValue<string>() ?? "";

JsonObject Hello() => new()
{
    ["protocol"] = 2,
    ["client"] = "My-Client",
    ["version"] = "1.0",
    ["topics"] = new JsonArray("classic"),
    ["operations"] = new JsonArray(operations.Keys.Select(name => (JsonNode?)name).ToArray()),
    ["lacks"] = new JsonObject(), // why it lacks an operation or option: { ["send.delay"] = "no delayed messages" }
};

// Returns ok, unsupported or error. Every request is answered, whatever happens.
async Task<JsonObject> Answer(JsonObject request)
{
    var name = Text(request, "do");
    if (name == "hello") return new JsonObject { ["ok"] = Hello() };
    if (!operations.TryGetValue(name, out var run)) return new JsonObject { ["unsupported"] = $"no operation {name}" };
    try
    {
        return new JsonObject { ["ok"] = await run(request) };
    }
    catch (Exception error) // TODO: find the kind of the client's own errors
    {
        var kind = error is Refusal refusal ? refusal.Kind : "Other";
        return new JsonObject { ["error"] = new JsonObject { ["kind"] = kind, ["text"] = error.Message } };
    }
}

// Names what a request waits for: requests of one handle keep their order, and a receive holds up no other.
string Turn(JsonObject request)
{
    string[] names = ["as", "handle", "producer", "consumer", "reader", "view", "transaction", "client"];
    var handle = names.Select(name => Text(request, name)).FirstOrDefault(each => each != "") ?? "";
    return handle + (Text(request, "do").StartsWith("receive", StringComparison.Ordinal) ? " receive" : "");
}

async Task Work(JsonObject request, Task before)
{
    await before;
    var answer = await Answer(request);
    answer["id"] = request["id"]!.DeepClone();
    Console.WriteLine(answer.ToJsonString());
}

Console.InputEncoding = Console.OutputEncoding = new UTF8Encoding(false);
var last = new Dictionary<string, Task>(); // by turn, the latest request
while (Console.ReadLine() is { } line)
{
    var request = JsonNode.Parse(line)!.AsObject();
    var before = last.GetValueOrDefault(Turn(request), Task.CompletedTask);
    last[Turn(request)] = Task.Run(() => Work(request, before));
}

/// <summary>An error of the client, of one of the kit's kinds, such as NotFound or Timeout.</summary>
class Refusal(string kind, string text) : Exception(text)
{
    public string Kind => kind;
}
